"""The oracle agrees with itself: tables that say the same thing twice say it the same way."""

import pytest

from tests.oracle import files, mail, org, tools


class TestTheOracle:
    def test_names_the_forty_tools_of_the_matrix(self):
        assert len(tools.ROLE_TOOLS) == 40
        assert len(tools.BUILTIN) == 21
        assert not set(tools.ROLE_TOOLS) & tools.BUILTIN

    @pytest.mark.parametrize("role", org.AGENTS)
    def test_agrees_with_itself_on_chat_safe(self, role):
        assert tools.CHAT_SAFE[role] == tools.BOUND[role] - tools.CODE

    def test_counts_the_tools_as_table_1_1_does_but_for_qa(self):
        counts = [len(tools.BOUND[role]) for role in org.AGENTS]
        assert counts == [4, 12, 10, 9, 10, 9, 11, 9, 6]

    def test_gives_types_to_exactly_the_pairs_that_may_meet(self):
        may_meet = {pair for pair, cell in mail.CONTACT.items() if cell in ("Y", "*")}
        assert set(mail.ALLOWED) == may_meet

    def test_lets_nobody_past_the_ceiling_of_a_type(self):
        for (sender, _), types in mail.ALLOWED.items():
            assert types <= mail.CEILING[sender] - set(mail.ISSUED_BY)

    def test_leaves_a_pair_that_always_may_all_but_what_goes_elsewhere(self):
        for (sender, recipient), cell in mail.CONTACT.items():
            if cell == "Y":
                everything = mail.CEILING[sender] - set(mail.ISSUED_BY)
                if mail.ESCALATES_TO.get(sender) != recipient:
                    everything -= {"escalation"}
                assert mail.ALLOWED[sender, recipient] == everything

    @pytest.mark.parametrize("role", org.AGENTS)
    def test_tries_at_least_25_paths_for_a_role(self, role):
        assert len({(path, scope) for who, path, scope, _ in files.table() if who == role}) >= 25
