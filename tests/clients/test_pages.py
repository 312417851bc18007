"""No snippet of docs/clients is only shown; and the clients are installed once, or loudly not."""

import pytest

from tests.clients import installs, snippets

RUN = {  # words of each block that the page's own test file runs
    "claude-code.md": ["claude mcp add", "mcpServers", "claude -p"],
    "curl.md": [
        *("key() {", "create_contract", "read_mail", "/events"),
        *("as backend_worker write_file", "MODE_DENIED"),
    ],
    "langgraph.md": [
        *("pip install", "def graph_of(", "= graph_of(", "def agent_of(", "= agent_of("),
    ],
    "openai-agents.md": ["Runner.run(", "chat.completions"],
}


class TestEverySnippet:
    def test_is_on_a_page_that_is_known_here(self):
        assert {page.name for page in snippets.PAGES.glob("*.md")} == set(RUN)

    @pytest.mark.parametrize("of_page", RUN)
    def test_is_one_that_is_run(self, of_page):
        blocks = snippets.fenced(of_page) + snippets.indented(of_page)
        ours = [snippets.only(blocks, containing=words) for words in RUN[of_page]]
        assert sorted(ours) == sorted(blocks)


class TestInstalled:
    @pytest.fixture
    def lock(self, monkeypatch, tmp_path):
        monkeypatch.setattr(installs, "KEPT", tmp_path / "clients")
        lock = tmp_path / "lock.txt"
        lock.write_text("one")
        return lock

    def test_once_for_a_lock_file_and_again_for_another(self, lock):
        made = []

        def install(folder):
            folder.mkdir()
            made.append(folder)

        first = installs.installed("it", lock, install)
        assert installs.installed("it", lock, install) == first
        lock.write_text("two")
        second = installs.installed("it", lock, install)
        assert made == [first, second]
        assert not first.exists()

    def test_anew_where_it_was_left_half_done(self, lock):
        def stop_halfway(folder):
            folder.mkdir()
            (folder / "half").touch()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            installs.installed("it", lock, stop_halfway)
        whole = installs.installed("it", lock, lambda folder: folder.mkdir())
        assert not (whole / "half").exists()

    def test_not_in_silence_where_no_index_is_in_reach(self, monkeypatch, tmp_path):
        monkeypatch.setattr(installs, "KEPT", tmp_path / "clients")
        for name in ("UV_DEFAULT_INDEX", "UV_FIND_LINKS", "PIP_INDEX_URL"):
            monkeypatch.setenv(name, "http://127.0.0.1:1/simple")
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        with pytest.raises(installs.Unreachable, match="need their index in reach"):
            installs.python()
