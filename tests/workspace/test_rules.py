"""Branches, environments and addresses: pure tables."""

import pytest

from core.decision import Allow, Code, Deny
from workspace import rules

MINE = "feature/login"


class TestBranch:
    def test_is_the_contracts_own(self):
        assert isinstance(rules.can_use_branch("feature/login", MINE), Allow)

    @pytest.mark.parametrize(
        "name",
        ["main", "master", "production", "MAIN", "Main ", " main", "ma\u200bin", "ｍａｉｎ",
         "refs/heads/main", "heads/main", "origin/main", "refs/remotes/origin/master", "main\n",
         "feature/login:main", "feature/login:refs/heads/main", "+feature/login:production",
         "HEAD", "HEAD:main", "+main", ":main", "/main", "refs//heads/main", "main/"],
    )  # fmt: skip
    def test_is_never_a_protected_one_by_any_spelling(self, name):
        decision = rules.can_use_branch(name, name)
        assert isinstance(decision, Deny)
        assert decision.code is Code.BRANCH_DENIED
        assert "protected" in decision.message

    @pytest.mark.parametrize(
        "name",
        ["--force", "-d", "--receive-pack=evil", "a..b", "a b", "a\x00b", "a\nb", "a:b", "a~1",
         "a^", "a*", "a?", "a[", "a\\b", "@{-1}", "a//b", "/a", "a/", "a.lock", ".a", "a/.b", "",
         "a.", "é", "refs/heads/feature/login", "x" * 300, "+feature/login"],
    )  # fmt: skip
    def test_is_never_an_odd_one(self, name):
        decision = rules.can_use_branch(name, name)
        assert isinstance(decision, Deny)
        assert decision.code is Code.BRANCH_DENIED

    @pytest.mark.parametrize(
        "name", ["feature/logout", "Feature/login", "feature/login2", "feature", "mainline"]
    )
    def test_is_never_another_one(self, name):
        decision = rules.can_use_branch(name, MINE)
        assert isinstance(decision, Deny)
        assert "feature/login" in decision.next_action

    def test_is_none_without_a_contract(self):
        decision = rules.can_use_branch("feature/login", ())
        assert isinstance(decision, Deny)
        assert "list_contracts" in decision.next_action


class TestCommit:
    def test_needs_an_assigned_branch(self):
        assert isinstance(rules.can_commit(MINE), Allow)
        assert isinstance(rules.can_commit(""), Deny)


class TestEnvironment:
    @pytest.mark.parametrize(
        "name",
        ["production", "Production", "PRODUCTION ", " production", "production\n", "produc\ttion",
         "pro\u200bduction", "ｐｒｏｄuction", "\u00a0production"],
    )  # fmt: skip
    def test_has_one_spelling(self, name):
        assert rules.environment_of(name) == "production"

    @pytest.mark.parametrize(
        "name", ["production", "prod", "live", "prod-eu", "production!", "stаging", "", "stage2"]
    )
    def test_needs_approval_unless_it_is_known_to_be_less(self, name):
        assert rules.needs_approval(rules.environment_of(name))

    @pytest.mark.parametrize("name", ["staging", "Staging ", "test", "development", "dev"])
    def test_needs_none_where_it_is_less(self, name):
        assert not rules.needs_approval(rules.environment_of(name))


class TestFetch:
    @pytest.mark.parametrize(
        "url",
        ["https://example.org/page?x=1", "http://93.184.216.34/", "https://example.org:8443/",
         "https://[2606:2800:220:1:248:1893:25c8:1946]/", "https://xn--bcher-kva.example/"],
    )  # fmt: skip
    def test_takes_public_addresses(self, url):
        assert isinstance(rules.can_fetch(url), Allow)

    @pytest.mark.parametrize(
        "url",
        ["http://localhost/", "http://LOCALHOST:8000/", "http://127.0.0.1/", "http://127.1/",
         "http://2130706433/", "http://0x7f.1/", "http://0x7f000001/", "http://017700000001/",
         "http://0/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/",
         "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://[::ffff:127.0.0.1]/",
         "http://[fe80::1]/", "http://[fc00::1]/", "http://[64:ff9b::7f00:1]/", "http://[::]/",
         "http://[2002:7f00:1::]/", "http://db.internal/", "http://printer.local./", "http://redis/",
         "http://127.0.0.1./", "http://0.0.0.0/", "http://100.64.0.1/", "http://224.0.0.1/"],
    )  # fmt: skip
    def test_refuses_this_machine_and_its_network_in_every_notation(self, url):
        decision = rules.can_fetch(url)
        assert isinstance(decision, Deny)
        assert decision.code is Code.SCOPE_DENIED

    @pytest.mark.parametrize(
        "url",
        ["file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "javascript:alert(1)",
         "//example.org/", "example.org", "https://", "https://user:pw@example.org/", "http://[::1",
         "https://example.org:99999/", "https://example.org/\r\nHost: x", "https://①②⑦.⓪.⓪.①/",
         "data:text/html,x", "https://user@example.org/"],
    )  # fmt: skip
    def test_refuses_what_is_no_plain_address(self, url):
        decision = rules.can_fetch(url)
        assert isinstance(decision, Deny)
        assert decision.code is Code.INVALID_PARAMS
