"""Those who hear a page of the site can tell its parts apart. Nothing is fetched before it is asked for."""

from scripts.site.hooks import name_parts

PAGE = (
    '<link rel="prev" href="../"><link rel="next" href="../b/"><link rel="stylesheet" href="a.css">'
    '<div class="md-search" role="dialog"></div>'
    '<nav class="md-nav md-nav--primary" aria-label="Navigation">'
    '<nav class="md-nav" aria-labelledby="x">in</nav>'
    '<nav class="md-nav md-nav--secondary" aria-label="Contents">'
    '<nav class="md-nav" aria-label="One">1</nav></nav></nav>'
    '<nav class="md-nav md-nav--secondary" aria-label="Contents"></nav>'
)


def test_the_parts_of_a_page_have_names_of_their_own() -> None:
    assert name_parts(PAGE, "en") == (
        '<link rel="stylesheet" href="a.css"><div class="md-search" role="dialog" aria-label="Search"></div>'
        '<nav class="md-nav md-nav--primary" aria-label="Navigation"><div class="md-nav">in</div>'
        '<nav class="md-nav md-nav--secondary" aria-label="Contents (menu)"><div class="md-nav">1</div></nav>'
        '</nav><nav class="md-nav md-nav--secondary" aria-label="Contents"></nav>'
    )
    assert 'aria-label="搜索"' in name_parts(PAGE, "zh")
