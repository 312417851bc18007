"""Files of the pages, as somebody edits them under a running site."""

from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware


def test_a_file_that_was_edited_is_sent_whole(settings, tmp_path, rf):
    settings.STATICFILES_DIRS = [tmp_path]
    file = tmp_path / "page.css"
    file.write_text("b { color: red }")
    serve = WhiteNoiseMiddleware(lambda _: HttpResponse(status=404))
    for text in ("b { color: red }", "b { color: red }\ni { color: blue }\n" * 9, "b {}"):
        file.write_text(text)
        answer = serve(rf.get("/static/page.css"))
        assert b"".join(answer.streaming_content).decode() == text
        assert answer.headers["Content-Length"] == str(len(text))
