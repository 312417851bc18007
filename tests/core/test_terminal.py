"""What a stranger wrote, as a terminal shows it."""

from core.terminal import printable_lines


def test_nothing_writes_over_a_line_and_an_end_of_one_is_an_end():
    assert printable_lines("a\r\nb\rc\x1b[2J\td\n") == "a\nb\ufffdc\ufffd[2J\td\n"
