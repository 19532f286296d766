"""What a call of a client costs is measured with each form of client."""

import shutil

from bench.client_calls import FORMS, ROOT, measure, serving


def test_each_form_of_client_is_measured_and_believes_the_server() -> None:
    with serving() as url:
        for form in FORMS:
            if form != "typescript" or shutil.which("node"):
                figure = measure(ROOT, form, url, at_once=2, calls=4)
                assert figure.cpu_ms > 0, form
                assert figure.p50_ms > 0, form
