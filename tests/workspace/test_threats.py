"""Each line of the threat list for files, git, deployment, web and skills, and the tests of it."""

import ast
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from tests.sources import parsed

FILES = "tests/workspace/test_files.py::TestReadFile::"
WRITES = "tests/workspace/test_files.py::TestWriteFile::"
TREE = "tests/documents/test_tree.py::"
PATHS = "tests/orgchart/test_paths.py::"
GIT = "tests/workspace/git/test_hostile.py::"
HOOK = "tests/workspace/git/test_hook.py::TestThePreReceiveHook::"
DEPLOYING = "tests/workspace/builds/test_deploying.py::"
BUILDING = "tests/workspace/builds/test_building.py::"
READING = "tests/workspace/web/test_reading.py::"
RESOLVED = f"{READING}TestTheAddress::"
ADDRESS = "tests/workspace/web/test_web_rules.py::TestAnAddress::"
SKILLS = "tests/workspace/test_skills.py::"
DEFINITION = "tests/workspace/test_skills_definition.py::"

THREATS = {
    "files: .., absolute, //, encoded, NUL, too long": [
        f"{FILES}test_refuses_every_other_form",
        f"{PATHS}test_every_path_is_decided_as_another_library_says",
        f"{PATHS}test_no_accepted_path_leaves_its_scope",
    ],
    "files: a sibling that shares a prefix": [f"{PATHS}TestAScope::test_holds_whole_parts"],
    "files: links, chains, hard links, /proc/self/root, FIFO, device": [
        f"{FILES}test_follows_no_way_out",
        f"{FILES}test_writes_through_no_way_out",
        f"{TREE}TestSpecialFiles::test_that_are_devices_are_refused",
        f"{TREE}TestSpecialFiles::test_that_become_pipes_between_look_and_open_hold_nobody",
    ],
    "files: renaming a folder between check and use": [
        f"{FILES}test_leaks_nothing_while_folders_are_swapped_for_links",
        "proofs/workspace/test_swaps.py::TestSwaps::test_leak_nothing_in_a_million_reads",
    ],
    "files: a sparse file of 10 GB": [f"{FILES}test_refuses_what_is_too_large_without_reading_it"],
    "files: .env and credentials anywhere": [
        "tests/workspace/test_runs.py::TestRunTest::test_sees_only_what_the_agent_may_read",
        f"{BUILDING}TestTheFolder::test_leaves_out_what_is_denied",
        f"{GIT}TestWhatIsCommitted::test_is_decided_by_what_git_found_in_a_folder",
    ],
    "files: QA writing source through a link in tests/": [
        f"{FILES}test_by_qa_writes_no_source_through_a_link_in_tests",
        f"{WRITES}test_by_qa_reaches_tests_and_its_reports_only",
    ],
    "git: hooks, filters, fsmonitor, gpg or ssh commands planted": [
        f"{GIT}TestAPlantedCommand::test_never_runs",
        f"{GIT}TestAPlantedCommand::test_would_run_without_a_git_folder_of_its_own",
        f"{HOOK}test_reads_no_configuration_of_this_machine",
    ],
    "git: options smuggled as names": [
        f"{GIT}TestANameThatIsAnOption::test_is_never_taken_for_one",
        f"{GIT}TestANameThatIsAnOption::test_is_only_text_in_a_message",
    ],
    "git: refspecs that end in a protected branch": [
        f"{GIT}TestAProtectedBranch::test_is_pushed_to_by_no_spelling",
        f"{GIT}TestAProtectedBranch::test_is_refused_by_the_repository_when_the_tool_lets_it_pass",
        f"{HOOK}test_refuses_protected_and_odd_names_even_when_they_are_named",
    ],
    "git: submodules and foreign transports": [
        f"{GIT}TestWhatIsCommitted::test_holds_no_link_and_no_submodule",
        f"{GIT}TestTheSandbox::test_has_no_transport",
    ],
    "git: bytes without end": [
        "tests/workspace/git/test_weight.py::TestACommit::test_counts_as_bytes_of_its_agent",
    ],
    "deployment: environments that differ by case, space or newline": [
        f"{DEPLOYING}TestProduction::test_is_spelled_in_one_way",
        "tests/workspace/builds/test_builds_rules.py::TestEnvironment::test_has_one_spelling",
    ],
    "deployment: an approval replayed, for another digest, expired, of its user": [
        f"{DEPLOYING}TestProduction::test_uses_its_approval_up",
        f"{DEPLOYING}TestProduction::test_takes_no_approval_of_something_else",
        f"{DEPLOYING}TestProduction::test_takes_no_expired_one",
        f"{DEPLOYING}TestProduction::test_takes_none_from_who_deploys",
        f"{DEPLOYING}TestAtOnce::test_one_approval_starts_one_deployment",
    ],
    "deployment: privileged containers and host mounts": [
        f"{DEPLOYING}TestADeployment::test_gives_its_container_nothing_of_the_machine",
        f"{BUILDING}TestABuild::test_is_unprivileged_and_limited",
        "tests/workspace/builds/test_dockerfiles.py::TestADockerfile::test_fetches_nothing",
    ],
    "web: loopback and private addresses in every notation": [
        f"{ADDRESS}test_refuses_this_machine_and_its_network_in_every_notation",
        f"{RESOLVED}test_is_not_called_where_any_answer_is_inside",
    ],
    "web: DNS that changes its answer": [
        f"{RESOLVED}test_is_called_as_it_was_checked_though_the_name_changes_its_answer",
    ],
    "web: redirects inward": [
        f"{RESOLVED}test_of_a_redirect_is_checked_too",
        f"{RESOLVED}test_of_a_redirect_is_checked_twice",
    ],
    "web: other schemes": [
        f"{RESOLVED}test_of_a_redirect_has_the_same_schemes",
        f"{ADDRESS}test_refuses_what_is_no_plain_address",
    ],
    "web: bombs and slow drips": [
        f"{READING}TestItsLimits::test_never_hold_more_than_they_allow",
        f"{READING}TestItsLimits::test_unpack_no_bomb",
        f"{READING}TestItsLimits::test_end_slow_drips",
    ],
    "skills: $ARGUMENTS with ;, newline, ! and backticks": [
        f"{DEFINITION}TestPrompt::test_takes_arguments_as_data",
        f"{DEFINITION}TestPrompt::test_runs_the_files_commands_whatever_the_arguments",
        f"{SKILLS}TestCommands::test_are_untouched_by_arguments",
    ],
    "skills: output that contains a command": [
        f"{DEFINITION}TestPrompt::test_reads_no_output_again",
        f"{SKILLS}TestCommands::test_are_not_made_of_output",
    ],
    "skills: a file changed after its approval": [
        f"{SKILLS}TestApproval::test_ends_with_any_change_of_the_file",
        f"{SKILLS}TestApproval::test_is_of_the_file_that_was_read",
    ],
    "skills: a name with /": [f"{SKILLS}TestUseSkill::test_takes_no_path_for_a_name"],
    "skills: recursion": [f"{SKILLS}TestUseSkill::test_never_runs_inside_itself"],
    "two agents on one machine": [
        f"tests/workspace/test_walls.py::TestTwoAgents::{name}"
        for name in (
            "test_do_not_see_each_other",
            "test_do_not_signal_each_other",
            "test_do_not_fill_up_each_others_scratch",
            "test_do_not_use_up_each_others_memory",
            "test_do_not_use_up_each_others_processes",
        )
    ],
}


@cache
def named_in(path: str) -> frozenset[str]:
    """The tests of a file, as `Class::test` or `test`."""
    body = parsed((Path(settings.BASE_DIR) / path).read_text("utf-8")).body
    found = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}::{each.name}"
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            }
    return frozenset(found)


@pytest.mark.parametrize("threat", THREATS)
def test_every_threat_has_tests(threat):
    assert THREATS[threat]
    missing = [
        each
        for each in THREATS[threat]
        if each.partition("::")[2] not in named_in(each.partition("::")[0])
    ]
    assert missing == []
