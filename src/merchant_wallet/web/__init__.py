"""What both sites share: templates, translations, responses with their headers, forms, static files, event
streams.

Rules: no rule about money lives here. Every text of a page has a translation. Nothing is loaded from other
hosts, and no script or style is inside a page.
"""
