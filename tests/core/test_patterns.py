"""Sentences taken apart by their patterns."""

import pytest

from core.patterns import Pattern, most_literal_first, reference_of, without_reference


class TestAPattern:
    @pytest.mark.parametrize(
        ("pattern", "sentence", "values"),
        [
            ("%(a)s may not contact %(b)s", "qa may not contact ceo", {"a": "qa", "b": "ceo"}),
            ("%(a)s has %(b)s", "a has b has c", {"a": "a", "b": "b has c"}),
            ("%(a)s is %(a)s", "x is x", {"a": "x"}),
            ("%(a)s is %(a)s", "x is y", None),
            ("50%% of %(a)s", "50% of it", {"a": "it"}),
            ("(%(a)s)?", "(a.b)?", {"a": "a.b"}),
            ("say%(a)s", "say", {"a": ""}),
            ("say why", "say why not", None),
            ("%(a)s to %(a)s%(b)s", "x to xy", {"a": "x", "b": "y"}),
            ("%(a)s%(b)s.", "one.", {"a": "", "b": "one"}),
            ("(%(a)s) is (%(b)s)", "(x) is (", None),
        ],
    )
    def test_finds_what_a_sentence_has_in_its_places(self, pattern, sentence, values):
        assert Pattern.of(pattern).values_in(sentence) == values

    def test_takes_one_word_where_it_is_told_to(self):
        pattern = Pattern.of("%(a)s reads %(b)s", single={"a"})
        assert pattern.values_in("my friend reads a book") is None
        assert pattern.values_in("she reads a book") == {"a": "she", "b": "a book"}

    def test_takes_its_time_with_no_words_of_an_agent(self):
        """A regular expression would try every way there is: hours."""
        pattern = Pattern.of("%(a)s is %(b)s is %(c)s is %(d)s is %(e)s!")
        assert pattern.values_in(" is " * 50_000) is None

    def test_of_more_words_comes_first(self):
        texts = ["%(a)s is %(b)s", "%(a)s is paused by %(b)s"]
        assert [each.text for each in most_literal_first(map(Pattern.of, texts))] == texts[::-1]


@pytest.mark.parametrize(
    ("rule", "name", "place"),
    [
        ("a frame ends once", "a frame ends once", ""),
        ("own text (spec: tasks 33)", "own text", "tasks 33"),
        ("own text (Spec: tasks 33)", "own text", "tasks 33"),
    ],
)
def test_a_rule_names_its_place_in_the_specification(rule, name, place):
    assert (without_reference(rule), reference_of(rule)) == (name, place)
