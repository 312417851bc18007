"""Filling in the admin's forms as a browser would: what the page shows is what is posted."""

from html.parser import HTMLParser


class _Fields(HTMLParser):
    """The values that one form of a page would post."""

    def __init__(self, form_id):
        super().__init__()
        self.form_id = form_id
        self.inside = False
        self.data = {}
        self.select = self.textarea = None

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag == "form":
            self.inside = a.get("id") == self.form_id
        if not self.inside:
            return
        if tag == "input" and a.get("name"):
            ticked = a.get("type") != "checkbox" or "checked" in a
            if ticked and a.get("type") not in ("submit", "button"):
                default = "on" if a.get("type") == "checkbox" else ""
                self.data.setdefault(a["name"], []).append(a.get("value", default))
        elif tag == "select":
            self.select = a.get("name")
        elif tag == "option" and self.select and "selected" in a:
            self.data.setdefault(self.select, []).append(a.get("value", ""))
        elif tag == "textarea":
            self.textarea = a.get("name")
            self.data[self.textarea] = [""]

    def handle_endtag(self, tag):
        if tag == "form":
            self.inside = False
        elif tag == "select":
            self.select = None
        elif tag == "textarea":
            self.textarea = None

    def handle_data(self, data):
        if self.inside and self.textarea:
            self.data[self.textarea][0] += data.removeprefix("\n")


def filled(client, page, form_id, **changes):
    """What the page's form posts, with some fields changed; None takes a field away."""
    answer = client.get(page)
    assert answer.status_code == 200, answer.status_code
    return values_of(answer, form_id, **changes)


def values_of(answer, form_id, **changes):
    """The same from an answer that is already here."""
    fields = _Fields(form_id)
    fields.feed(answer.content.decode())
    assert fields.data, f"no form {form_id}"
    data = dict(fields.data)
    for name, value in changes.items():
        if value is None:
            data.pop(name, None)
        else:
            data[name] = value if isinstance(value, list) else [value]
    return data


def preview(client, page, form_id, **changes):
    """Post a form and see what it would do."""
    return client.post(page, filled(client, page, form_id, **changes))


def confirm(client, page, seen):
    """Confirm what a preview showed."""
    return client.post(page, values_of(seen, "confirm-form", _confirm="1"))
