"""A manifest knows every file of its folder, whatever was done to one, and to who wrote it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from fresh_python import loaded_after
from hypothesis import given
from hypothesis import strategies as st
from killed import killed_at_every_step

from dsa_keras import manifest as module
from dsa_keras.errors import RunError
from dsa_keras.manifest import Manifest

OLD = {"best.npz": b"old best", "evaluation.json": b"{}", "deep/er/words.txt": b"old words"}
NEW = {"best.npz": b"new best", "deep/er/words.txt": b"new words", "new/last.npz": b"last"}
SUM = hashlib.sha256(b"").hexdigest()


def put(folder, contents):
    manifest = Manifest(folder)
    with manifest.replacing() as files:
        for name, content in contents.items():
            files.write(name, lambda path, content=content: path.write_bytes(content))
    return manifest


def replace(folder):
    """The old folder becomes the new one; run in a process that is killed on the way."""
    with Manifest(folder).replacing() as files:
        for name, content in NEW.items():
            files.write(name, lambda path, content=content: path.write_bytes(content))
        files.remove("evaluation.json")


def create(folder):
    put(folder, OLD)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def visible(folder):
    return {name: one for name, one in contents(folder).items() if Path(name).name[0] != "."}


@pytest.fixture
def old(tmp_path):
    folder = tmp_path / "old"
    put(folder, OLD)
    return folder


@pytest.fixture
def interrupted(old):
    """A replacement of which half was done when its process died: best.npz is new, the rest old."""
    stop = OSError("stop")
    real = os.replace

    def replace_some(source, target):
        if Path(target).name == "words.txt":
            raise stop
        real(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", replace_some)
        with pytest.raises(OSError, match="stop"):
            replace(old)
    return old


def test_what_is_written_is_checked_and_read(tmp_path):
    manifest = Manifest(tmp_path / "run")
    assert not manifest.exists
    with manifest.replacing() as files:
        digest = files.write("best.npz", lambda path: np.savez(path, a=np.arange(3)))
        files.write("empty", Path.touch)
        assert not manifest.exists
        assert visible(tmp_path) == {}
    assert manifest.exists
    data = (tmp_path / "run" / "best.npz").read_bytes()
    assert digest == hashlib.sha256(data).hexdigest()
    assert json.loads(manifest.path.read_text()) == {
        "format": 1,
        "files": {"best.npz": digest, "empty": SUM},
    }
    manifest.check("best.npz")
    manifest.check(["empty", "best.npz"])
    manifest.check_all()
    assert manifest.names == ["best.npz", "empty"]
    assert manifest.read_bytes("best.npz") == data
    with manifest.open_checked("best.npz") as file, np.load(file) as arrays:
        assert list(arrays["a"]) == [0, 1, 2]
    assert listed(tmp_path / "run") == ["best.npz", "empty", "manifest.json"]
    plain = tmp_path / "plain"
    plain.touch()
    for name in ("best.npz", "manifest.json"):
        assert (tmp_path / "run" / name).stat().st_mode == plain.stat().st_mode


def test_replaces_adds_and_removes(old):
    replace(old)
    assert contents(old) == NEW
    manifest = Manifest(old)
    manifest.check_all()
    assert manifest.names == sorted(NEW)
    with pytest.raises(RunError, match=r"evaluation.json: does not belong here"):
        manifest.check("evaluation.json")


def test_the_last_one_under_a_name_counts(old):
    manifest = Manifest(old)
    with manifest.replacing() as files:
        files.write("best.npz", lambda path: path.write_bytes(b"first"))
        files.write("best.npz", lambda path: path.write_bytes(b"second"))
        files.write("evaluation.json", Path.touch)
        files.remove("evaluation.json")
        files.remove("never/was")
        files.remove("deep/er/words.txt")
        files.write("deep/er/words.txt", lambda path: path.write_bytes(b"again"))
    assert contents(old) == {"best.npz": b"second", "deep/er/words.txt": b"again"}
    manifest.check_all()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_raises_changes_nothing(old, error):
    before, manifest = contents(old), (old / "manifest.json").read_bytes()
    folders = sorted(path for path in old.rglob("*") if path.is_dir())
    with pytest.raises(error), Manifest(old).replacing() as files:  # noqa: PT012
        files.write("best.npz", lambda path: path.write_bytes(b"new"))
        files.write("brand/new/file", Path.touch)
        files.remove("evaluation.json")
        raise error
    assert contents(old) == before
    assert (old / "manifest.json").read_bytes() == manifest
    assert sorted(path for path in old.rglob("*") if path.is_dir()) == folders


def test_a_writer_that_fails_or_writes_elsewhere_is_no_empty_file(old):
    before = contents(old)

    def elsewhere(path):
        path.with_name("stray").write_bytes(b"")

    def fail(path):
        path.write_bytes(b"half")
        raise ZeroDivisionError

    with pytest.raises(FileNotFoundError), Manifest(old).replacing() as files:
        files.write("best.npz", elsewhere)
    (old / "stray").unlink()
    with pytest.raises(OSError, match="not a file"), Manifest(old).replacing() as files:
        files.write("best.npz", lambda path: path.symlink_to(old / "evaluation.json"))
    assert contents(old) == before
    with Manifest(old).replacing() as files:
        files.write("best.npz", lambda path: path.write_bytes(b"whole"))
        with pytest.raises(ZeroDivisionError):
            files.write("best.npz", fail)
    assert contents(old) == {**before, "best.npz": b"whole"}
    Manifest(old).check_all()


def test_a_folder_in_the_place_of_a_file_is_seen_before_anything_is_done(old):
    before = contents(old)
    with pytest.raises(IsADirectoryError), Manifest(old).replacing() as files:  # noqa: PT012
        files.write("best.npz", lambda path: path.write_bytes(b"new"))
        files.write("deep/er", Path.touch)
    with pytest.raises(IsADirectoryError), Manifest(old).replacing() as files:  # noqa: PT012
        files.write("best.npz", lambda path: path.write_bytes(b"new"))
        files.write("a", Path.touch)
        files.write("a/b", Path.touch)
    assert contents(old) == before
    Manifest(old).check_all()
    with Manifest(old).replacing():
        pass
    assert contents(old) == before


def test_a_process_killed_at_any_step_leaves_old_or_new_files_that_check(old, tmp_path):
    (tmp_path / "killed").mkdir()
    folders = killed_at_every_step(replace, old, tmp_path / "killed")
    assert contents(folders[-1]) == NEW
    seen = set()
    for folder in folders:
        manifest = Manifest(folder)
        manifest.check_all()
        found = visible(folder)
        for name in {*OLD, *NEW}:
            assert found.get(name) in (OLD.get(name), NEW.get(name)), (folder, name)
            if name in found:
                assert manifest.read_bytes(name) == found[name]
        seen.add(tuple(sorted(found.items())))
        if int(folder.name) % 2:
            replace(folder)
            assert contents(folder) == NEW, folder
        else:
            # One that changes nothing settles what was left.
            with manifest.replacing():
                pass
            assert contents(folder) == found, folder
            assert "replacing" not in json.loads(manifest.path.read_text())
            assert manifest.names == sorted(found)
        manifest.check_all()
    # Old, new, and every step between: three files and a removal, in the order of the calls.
    assert len(seen) == 5


def test_a_first_writer_killed_at_any_step_leaves_a_folder_to_go_on_with(tmp_path):
    empty, killed = tmp_path / "empty", tmp_path / "killed"
    empty.mkdir()
    killed.mkdir()
    for folder in killed_at_every_step(create, empty, killed):
        if Manifest(folder).exists:
            Manifest(folder).check_all()
        else:
            assert visible(folder) == {}
        create(folder)
        assert contents(folder) == OLD
        Manifest(folder).check_all()


def test_a_folder_without_a_manifest_gets_one_while_it_may_be_killed(tmp_path):
    before, killed = tmp_path / "before", tmp_path / "killed"
    for name, content in OLD.items():
        (before / name).parent.mkdir(parents=True, exist_ok=True)
        (before / name).write_bytes(content)
    killed.mkdir()
    ways = set()
    for folder in killed_at_every_step(replace, before, killed):
        ways.add(Manifest(folder).exists)
        if Manifest(folder).exists:
            Manifest(folder).check_all()
    assert ways == {True, False}


def test_all_is_on_the_disk_before_the_next_step_needs_it(old, monkeypatch):
    """Power may fail too: a rename must not get to the disk before what is renamed."""
    events = []
    synced, renamed = os.fsync, os.replace

    def fsync(handle):
        events.append(("flush", str(Path(f"/proc/self/fd/{handle}").readlink())))
        synced(handle)

    def rename(source, target):
        events.append(("rename", str(source), str(target)))
        renamed(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    replace(old)
    renames = [event for event in events if event[0] == "rename"]
    targets = [Path(event[2]).relative_to(old).as_posix() for event in renames]
    assert targets == ["manifest.json", *NEW, "manifest.json"]
    for event in renames:
        assert ("flush", event[1]) in events[: events.index(event)]
    assert ("flush", str(old)) in events[: events.index(renames[0])]  # the new folder in it
    first, last = events.index(renames[0]), len(events) - 1 - events[::-1].index(renames[-1])
    assert events[first + 1] == ("flush", str(old))  # before any other rename
    assert {("flush", str((old / name).parent)) for name in NEW} <= set(events[first + 2 : last])
    assert events[last + 1] == ("flush", str(old))


def test_while_files_are_replaced_both_are_right_and_nothing_else(interrupted):
    manifest = Manifest(interrupted)
    assert visible(interrupted) == {**OLD, "best.npz": NEW["best.npz"]}
    manifest.check_all()
    manifest.check(OLD)
    with pytest.raises(RunError, match=r"new/last.npz: is missing"):
        manifest.check("new/last.npz")
    for name in OLD:
        path = interrupted / name
        right = path.read_bytes()
        path.write_bytes(right + b".")
        for check in (manifest.check_all, lambda name=name: manifest.check(name)):
            with pytest.raises(RunError, match=f"{name}: is not the file that belongs here"):
                check()
        path.write_bytes(right)
    (interrupted / "best.npz").unlink()
    with pytest.raises(RunError, match=r"best.npz: is missing"):
        manifest.check_all()


def test_facts_may_be_written_while_files_are_replaced(interrupted):
    manifest = Manifest(interrupted)
    manifest.write({"fact": 1})
    manifest.check_all()
    replace(interrupted)
    manifest.check_all()
    assert manifest.facts == {"fact": 1}


def replace_and_clean(folder):
    with Manifest(folder).replacing() as files:
        files.remove("notes.txt")
        files.write("best.npz", lambda path: path.write_bytes(b"new"))


def test_a_file_that_was_never_listed_may_be_removed(old, tmp_path):
    (tmp_path / "killed").mkdir()
    (old / "notes.txt").touch()
    folders = killed_at_every_step(replace_and_clean, old, tmp_path / "killed")
    for folder in folders:
        Manifest(folder).check_all(ignore=["notes.txt"])
    assert contents(folders[-1]) == {**OLD, "best.npz": b"new"}


def test_a_manifest_that_cannot_be_renamed_changes_nothing(old, monkeypatch):
    before = listed(old), contents(old), (old / "manifest.json").read_bytes()

    def refuse(source, target):
        raise OSError("broken disk")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="broken disk"):
        replace(old)
    with pytest.raises(OSError, match="broken disk"):
        Manifest(old).write({"fact": 1})
    assert (listed(old), contents(old), (old / "manifest.json").read_bytes()) == before


def test_a_damaged_file_is_not_settled_as_right(interrupted):
    (interrupted / "best.npz").write_bytes(b"neither")
    manifest = Manifest(interrupted)
    with manifest.replacing():
        pass
    with pytest.raises(RunError, match=r"best.npz: is not the file"):
        manifest.check_all()
    put(interrupted, {"best.npz": b"right"})
    manifest.check_all()
    assert contents(interrupted) == {**OLD, "best.npz": b"right"}


def test_only_our_own_temporary_files_are_removed(interrupted):
    others = {".best-abcdefgh.aside.npz", ".best-x.replacing.npz", ".mine.npz"}
    ours = interrupted / "deep" / ".best-abcdefgh.replacing.npz"
    for name in others:
        (interrupted / name).touch()
    ours.touch()
    put(interrupted, {})
    assert not ours.exists()
    assert others <= {path.name for path in interrupted.iterdir()}
    with pytest.raises(RunError, match=r"\.best-x\.replacing\.npz: does not belong here"):
        Manifest(interrupted).check_all()
    Manifest(interrupted).check_all(ignore=[".best-x*", ".mine*"])


def flipped(data):
    for place in range(len(data)):
        for bit in range(8):
            yield data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


@pytest.mark.parametrize("state", ["old", "interrupted"])
def test_every_flipped_bit_of_a_file_is_found(request, state):
    folder = request.getfixturevalue(state)
    manifest = Manifest(folder)
    for name in OLD:
        path = folder / name
        right = path.read_bytes()
        for wrong in flipped(right):
            path.write_bytes(wrong)
            for look in (manifest.check, manifest.read_bytes, manifest.open_checked):
                with pytest.raises(RunError, match="is not the file that belongs here"):
                    look(name)
            with pytest.raises(RunError, match="is not the file that belongs here"):
                manifest.check_all()
        path.write_bytes(right)
    manifest.check_all()


@pytest.mark.parametrize("state", ["old", "interrupted"])
def test_no_flipped_bit_of_a_manifest_lets_a_changed_file_pass(request, state):
    folder = request.getfixturevalue(state)
    manifest = Manifest(folder)
    right = manifest.path.read_bytes()
    passed = 0
    for wrong in flipped(right):
        manifest.path.write_bytes(wrong)
        try:
            manifest.check_all()
        except RunError:
            continue
        passed += 1
        for name in OLD:
            path = folder / name
            content = path.read_bytes()
            path.write_bytes(content + b".")
            for check in (manifest.check_all, lambda name=name: manifest.check(name)):
                with pytest.raises(RunError):
                    check()
            path.write_bytes(content)
    # White space may flip to white space, and in a replacement the sum a file does not have.
    assert passed < len(right) * 8 * (0.01 if state == "old" else 0.5)
    manifest.path.write_bytes(right)
    manifest.check_all()


def test_truncated_emptied_deleted_and_swapped_files_are_found(old):
    manifest = Manifest(old)
    path = old / "best.npz"
    right = path.read_bytes()
    for wrong in (b"", right[:-1], right + b"\0"):
        path.write_bytes(wrong)
        with pytest.raises(RunError, match=r"best.npz: is not the file .*Restore the folder"):
            manifest.check_all()
    path.unlink()
    for check in (manifest.check_all, lambda: manifest.check(OLD)):
        with pytest.raises(RunError, match=r"best.npz: is missing"):
            check()
    (old / "deep" / "er" / "words.txt").rename(path)
    with pytest.raises(RunError, match=r"best.npz: is not the file"):
        manifest.check_all()
    path.write_bytes(right)
    (old / "deep" / "er").rmdir()
    (old / "deep" / "er").touch()
    with pytest.raises(RunError, match=r"words.txt: is missing"):
        manifest.check("deep/er/words.txt")


def test_added_files_are_found_unless_ignored(old):
    manifest = Manifest(old)
    (old / ".lock").touch()
    (old / ".card-abcdefgh.aside.md").touch()
    (old / "logs" / "train").mkdir(parents=True)
    manifest.check_all()
    (old / "logs" / "train" / "events").touch()
    with pytest.raises(RunError, match=r"events: does not belong here .* Remove it"):
        manifest.check_all()
    manifest.check_all(ignore=("logs/*",))
    for number, make in enumerate(
        (
            lambda path: path.symlink_to(old),
            lambda path: path.symlink_to("nowhere"),
            os.mkfifo,
            lambda path: (path / "more").mkdir(parents=True) or (path / "more" / ".lock").touch(),
        )
    ):
        place = old / f"added{number}"
        make(place)
        with pytest.raises(RunError, match=f"added{number}.*: does not belong here"):
            manifest.check_all(ignore=("logs/*",))
        manifest.check_all(ignore=("logs/*", f"added{number}*"))
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()


def test_what_is_no_file_is_refused_and_not_waited_for(old, tmp_path):
    manifest = Manifest(old)
    path = old / "best.npz"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(RunError, match=r"best.npz: cannot be read \(it is not a file\)"):
        manifest.check_all()
    path.unlink()
    path.mkdir()
    with pytest.raises(RunError, match=r"best.npz: cannot be read"):
        manifest.read_bytes("best.npz")
    path.rmdir()
    path.symlink_to(path)
    with pytest.raises(RunError, match=r"best.npz: cannot be read"):
        manifest.check("best.npz")
    path.unlink()
    (tmp_path / "best.npz").write_bytes(OLD["best.npz"])
    path.symlink_to(tmp_path / "best.npz")
    for look in (manifest.check, manifest.open_checked):
        with pytest.raises(RunError, match="is a link out of the folder"):
            look("best.npz")
    with (
        pytest.raises(RunError, match="is a link out of the folder"),
        manifest.replacing() as files,
    ):
        files.write("best.npz", Path.touch)
    path.unlink()
    # A link to another file of the folder is what it leads to; the folder may be a link itself.
    (old / "copy").write_bytes(OLD["best.npz"])
    path.symlink_to("copy")
    (tmp_path / "link").symlink_to(old)
    Manifest(tmp_path / "link").check_all(ignore=["copy"])


NAMES = st.lists(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)
    .map(lambda part: part[:40])
    .filter(lambda part: part not in (".", "..")),
    min_size=1,
    max_size=3,
).map("/".join)


@given(st.dictionaries(NAMES, st.binary(max_size=20), min_size=1, max_size=4))
def test_any_name_that_a_file_can_have_is_kept(tmp_path, files):
    parents = {str(parent) for name in files for parent in Path(name).parents}
    files = {name: one for name, one in files.items() if name not in {*parents, "manifest.json"}}
    folder = tmp_path / hashlib.sha256(repr(sorted(files)).encode()).hexdigest()
    manifest = put(folder, files)
    manifest.check_all()
    assert manifest.names == sorted(files) if files else not manifest.exists
    for name, content in files.items():
        assert manifest.read_bytes(name) == content == (folder / name).read_bytes()
    if files:
        found = Manifest.of(folder)
        found.write({})
        assert found.names == sorted(files)
    shutil.rmtree(folder, ignore_errors=True)


REFUSED = [
    *("", ".", "..", "/", "/etc/passwd", "//etc", "../up", "a/../../up", "a/..", "./a", "a//b"),
    *("a/", "a\0b", "\ud800", "manifest.json", ".lock", ".a-abcdefgh.replacing.npz"),
    ".a-abcdefgh.aside/b",
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_leads_elsewhere_is_refused(old, name):
    manifest = Manifest(old)
    before = contents(old.parent)
    for look in (manifest.check, manifest.read_bytes, manifest.open_checked):
        with pytest.raises(RunError, match="is not the name of a file in the folder"):
            look(name)
    with pytest.raises(RunError, match="is not the name"), manifest.replacing() as files:
        files.write(name, Path.touch)
    with pytest.raises(RunError, match="is not the name"), manifest.replacing() as files:
        files.remove(name)
    assert contents(old.parent) == before
    for values in ({"files": {name: SUM}}, {"files": {}, "replacing": {name: SUM}}):
        manifest.path.write_text(json.dumps({"format": 1, **values}))
        with pytest.raises(RunError, match=r"manifest.json: is damaged .*is not the name"):
            manifest.check_all()


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "~"]), max_size=6).map("/".join))
def test_no_name_that_is_taken_leads_out(tmp_path, name):
    if Manifest(tmp_path)._is_name(name):
        real = Path(os.path.normpath(tmp_path / name))
        assert real == tmp_path / name
        assert tmp_path in real.parents


DAMAGED = [
    *("", "[", "null", "[]", "1", '"text"', "{}", '{"format": 1}', '{"files": {}}'),
    '{"format": 2, "files": {}}',
    '{"format": true, "files": {}}',
    '{"format": 1.0, "files": {}}',
    '{"format": "1", "files": {}}',
    '{"format": 1, "files": []}',
    '{"format": 1, "files": null}',
    '{"format": 1, "files": {"a": null}}',
    '{"format": 1, "files": {"a": 1}}',
    '{"format": 1, "files": {"a": "' + SUM.upper() + '"}}',
    '{"format": 1, "files": {"a": "' + SUM + '\\n"}}',
    '{"format": 1, "files": {"a": "' + SUM + '", "a": "' + SUM + '"}}',
    '{"format": 1, "files": {}, "files": {}}',
    '{"format": 1, "files": {}, "replacing": null}',
    '{"format": 1, "files": {}, "replacing": {"a": ""}}',
    '{"format": 1, "files": {}, "fact": "\\ud800"}',
    '{"format": 1, "files": {}, "fact": ' + "9" * 5000 + "}",
    '{"format": 1, "files": {}, "fact": ' + "[" * 100_000 + "]" * 100_000 + "}",
    b'{"format": 1, "files": {}, "fact": "\xff"}',
    '{"format": 1, "files": {}}' + " " * module.LIMIT,
]


@pytest.mark.parametrize("content", DAMAGED, ids=lambda content: repr(content[:40]))
def test_a_damaged_manifest_is_one_error(old, content):
    path = old / "manifest.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    manifest = Manifest(old)
    assert manifest.exists

    def replace_nothing():
        with manifest.replacing():
            pytest.fail("the block must not begin")

    for use in (
        manifest.check_all,
        lambda: manifest.check("best.npz"),
        lambda: manifest.facts,
        lambda: manifest.write({}),
        replace_nothing,
    ):
        with pytest.raises(RunError, match=r"manifest.json: is damaged") as caught:
            use()
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "out", "missing"])
def test_what_is_no_manifest_is_one_error(old, tmp_path, kind):
    path = old / "manifest.json"
    (tmp_path / "elsewhere").write_bytes(path.read_bytes())
    path.unlink()
    {
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to(path),
        "out": lambda: path.symlink_to(tmp_path / "elsewhere"),
        "missing": lambda: None,
    }[kind]()
    expected = {"out": "is a link out", "missing": "is missing"}.get(kind, "cannot be read")
    assert Manifest(old).exists == (kind != "missing")
    for use in (Manifest(old).check_all, lambda: Manifest(old).check("best.npz")):
        with pytest.raises(RunError, match=f"manifest.json: {expected}"):
            use()
    with pytest.raises(RunError, match="is missing"):
        Manifest(tmp_path / "nowhere").check_all()


def test_a_complete_folder_with_facts(old):
    (old / "manifest.json").unlink()
    (old / "logs").mkdir()
    (old / "logs" / "events").touch()
    (old / ".lock").touch()
    facts = {"name": "ö", "version": 3, "metrics": {"accuracy": 0.5}, "run": [None, True]}
    manifest = Manifest.of(old, "deep/manifest.json", ignore=["logs/*"], hint="Export it again")
    assert not manifest.exists
    manifest.write(facts)
    again = Manifest(old, "deep/manifest.json", hint="Export it again")
    assert again.facts == facts
    assert again.names == sorted(OLD)
    again.check_all(ignore=["logs/*"])
    with pytest.raises(RunError, match="events: does not belong here"):
        again.check_all()
    with again.replacing() as files:
        files.remove("evaluation.json")
    assert again.facts == facts
    again.write({"name": "other"})
    assert again.facts == {"name": "other"}
    again.check_all(ignore=["logs/*"])
    (old / "best.npz").write_bytes(b"")
    with pytest.raises(RunError, match=r"belongs here .* Export it again"):
        again.check_all(ignore=["logs/*"])


@pytest.mark.parametrize("key", ["format", "files", "replacing"])
def test_facts_do_not_take_the_place_of_checksums(old, key):
    before = (old / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match=f"'{key}' is a key of the manifest itself"):
        Manifest(old).write({key: {}})
    assert (old / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("value", ["\ud800", "a" * module.LIMIT, object(), {1: 0, "1": 0}])
def test_facts_that_could_not_be_read_again_are_not_written(old, value):
    before = (old / "manifest.json").read_bytes()
    with pytest.raises((ValueError, TypeError)):
        Manifest(old).write({"fact": value})
    assert (old / "manifest.json").read_bytes() == before
    assert listed(old) == ["best.npz", "deep", "evaluation.json", "manifest.json"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_a_folder_with_more_than_files_gets_no_manifest(old, make):
    make(old / "odd")
    with pytest.raises(RunError, match=r"odd: (cannot be read|is a link out)"):
        Manifest.of(old)


def test_readers_never_find_a_file_wrong_while_it_is_replaced(old):
    """What was read and what was checked are the same bytes, and of the right time."""
    done, wrong, read = threading.Event(), [], set()

    def keep_reading():
        manifest = Manifest(old)
        while not done.is_set():
            try:
                read.add(manifest.read_bytes("best.npz"))
                with manifest.open_checked("deep/er/words.txt") as file:
                    read.add(file.read())
                manifest.check_all()
            except RunError as error:
                wrong.append(str(error))
                return

    reader = threading.Thread(target=keep_reading)
    reader.start()
    try:
        for number in range(60):
            put(old, {"best.npz": b"%d" % number, "deep/er/words.txt": b"%d" % -number})
    finally:
        done.set()
        reader.join()
    assert wrong == []
    assert len(read) > 2


def test_a_file_that_was_opened_stays_the_one_that_was_checked(old):
    with Manifest(old).open_checked("best.npz") as file:
        replace(old)
        assert file.read() == OLD["best.npz"]


def test_checks_are_quick_to_load():
    heavy = ("tensorflow", "keras", "numpy")
    assert loaded_after("import dsa_keras.manifest, dsa_keras.locks", heavy) == []
