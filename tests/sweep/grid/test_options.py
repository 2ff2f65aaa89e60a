from __future__ import annotations

from pathlib import Path

import pytest

import policies
from sim.base.errors import InputError
from sweep.grid.options import GROUPS, Options


def user_option(folder: Path, group: str, name: str, text: str) -> Path:
    file = folder / group / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_every_group_has_options_with_a_description() -> None:
    options = Options()
    for group in GROUPS:
        assert options.names(group), group
        for name in options.names(group):
            assert len(options.summary(group, name)) > 10, f"{group}={name}"


def test_every_policy_has_an_option() -> None:
    # other tests may have registered policies of their own
    ours = {n for n in policies.names() if policies.spec(n).__module__.startswith("policies.")}
    assert len(ours) > 10
    assert ours <= {name.rpartition("/")[2] for name in Options().names("policy")}


@pytest.mark.slow
def test_every_option_composes() -> None:
    options = Options()
    names = {group: options.names(group) for group in GROUPS}
    for i in range(max(map(len, names.values()))):
        chosen = {group: options_of[i % len(options_of)] for group, options_of in names.items()}
        composed = options.compose(**chosen)
        assert all(composed[group] for group in GROUPS), chosen


def test_a_trace_names_its_cluster_and_the_command_line_wins() -> None:
    options = Options()
    assert options.compose(trace="alibaba2018")["cluster"]["shape"] == {"cpu": 96, "mem": 100}
    assert options.compose(trace="swf")["cluster"]["shape"] == "slots"
    assert options.compose(trace="alibaba2018", cluster="slots")["cluster"]["shape"] == "slots"


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown policy 'fiffo'; did you mean 'fifo'"):
        Options().check("policy", "fiffo")


def test_a_users_folder_adds_options(tmp_path: Path) -> None:
    user_option(tmp_path, "policy", "mine/first", "name: fifo\n")
    options = Options.from_folders([str(tmp_path)])
    assert "mine/first" in options.names("policy")
    assert options.compose(policy="mine/first")["policy"] == {"name": "fifo"}


def test_a_users_option_must_not_hide_another(tmp_path: Path) -> None:
    user_option(tmp_path, "policy", "fifo", "name: fifo\n")
    with pytest.raises(InputError, match="policy=fifo exists already"):
        Options.from_folders([str(tmp_path)]).names("policy")


def test_a_users_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        Options.from_folders([str(tmp_path / "nowhere")])


def test_yaml_that_does_not_parse_is_an_input_error(tmp_path: Path) -> None:
    user_option(tmp_path, "policy", "broken", "name: fifo\n  x: [1\n")
    user_option(tmp_path, "evaluator", "broken", "name: [slow\n")
    options = Options.from_folders([str(tmp_path)])
    with pytest.raises(InputError) as caught:
        options.compose(policy="broken")
    where = f"{tmp_path}/policy/broken.yaml:2: policy=broken does not compose: "
    assert str(caught.value) == where + "mapping values are not allowed here"
    with pytest.raises(InputError) as caught:
        options.plain("evaluator", "broken")
    where = f"{tmp_path}/evaluator/broken.yaml:2: evaluator=broken does not compose: "
    assert str(caught.value).startswith(where)


@pytest.mark.parametrize(
    "content", [b"name: \xff", b"name: \x01", b"a: *b", b"a: &a [*a]", b"- 1: {"]
)
def test_whatever_is_wrong_in_a_file_is_said_in_a_line_with_its_name(
    tmp_path: Path, content: bytes
) -> None:
    user_option(tmp_path, "policy", "broken", "")
    (tmp_path / "policy" / "broken.yaml").write_bytes(content)
    with pytest.raises(InputError) as caught:
        Options.from_folders([str(tmp_path)]).compose(policy="broken")
    (line,) = str(caught.value).splitlines()
    assert f"{tmp_path}/policy/broken.yaml" in line


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a0: &a [1, 2]\na1: &b [*a, *a]\n", None, ""),
        ("a: &a {b: 1}\nc: *a\nd: *a\n", None, ""),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("\nb: " + "[" * 101 + "]" * 101, 2, "more than 100 deep"),
        ("b: " + "[" * 90 + "]" * 90, None, ""),
        ("a: &a [" + "1," * 400 + "]\nb: [" + "*a," * 400 + "]", 2, "more than 100,000 values"),
    ],
)
def test_yaml_of_more_values_than_it_shows_is_refused(tmp_path, text, line, words):
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "mine.yaml").write_text("name: fifo\n" + text)
    if line is None:
        Options.from_folders([str(tmp_path)]).compose(policy="mine")
        return
    with pytest.raises(InputError, match=words) as error:
        Options.from_folders([str(tmp_path)]).compose(policy="mine")
    assert error.value.file == str(tmp_path / "policy" / "mine.yaml")
    assert error.value.line == line + 1
