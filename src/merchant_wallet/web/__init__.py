"""What both sites stand on: templates, words, answers with their headers, forms, static files, live streams.

Rules: no rule about money lives here, and no text of a page is written in Python without a translation.
Nothing is loaded from elsewhere, and no script or style stands inside a page.
"""
