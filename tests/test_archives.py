import gzip
import os
import stat
import zipfile

import pytest

from dsa_keras.data.archives import list_members, open_member
from dsa_keras.errors import DataError

TEXT = b"the first line\nthe second line\n" * 5000


def _zip(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _read(path, name=None):
    with open_member(path, name) as stream:
        return stream.read()


def test_plain_gz_and_zip_give_the_same_bytes(tmp_path):
    plain = tmp_path / "words.txt"
    plain.write_bytes(TEXT)
    packed = tmp_path / "words.txt.gz"
    packed.write_bytes(gzip.compress(TEXT))
    archive = _zip(tmp_path / "words.zip", {"words.txt": TEXT})
    assert _read(plain) == _read(packed) == _read(archive) == TEXT


def test_streams_know_their_size_and_member(tmp_path):
    archive = _zip(tmp_path / "a.zip", {"folder/a.txt": TEXT})
    with open_member(archive) as stream:
        assert (stream.member, stream.size) == ("folder/a.txt", len(TEXT))
        assert stream.readline() == b"the first line\n"


def test_archives_are_told_by_content_not_by_name(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(gzip.compress(TEXT))
    assert _read(path) == TEXT


def test_members_are_listed_without_folders_and_side_cars(tmp_path):
    archive = _zip(tmp_path / "a.zip", {"d/": b"", "d/a.txt": b"a", "__MACOSX/d/._a.txt": b"x"})
    assert list_members(archive) == ["d/a.txt"]
    assert _read(archive, "d/a.txt") == b"a"


def test_one_text_file_among_others_is_taken(tmp_path):
    assert _read(_zip(tmp_path / "a.zip", {"README.md": b"x", "a.txt": b"a"})) == b"a"


def test_several_text_files_need_a_name(tmp_path):
    archive = _zip(tmp_path / "a.zip", {"a.txt": b"a", "b.txt": b"b"})
    with pytest.raises(DataError, match=r"more than one \.txt file \(a\.txt, b\.txt\)"):
        _read(archive)
    assert _read(archive, "b.txt") == b"b"
    with pytest.raises(DataError, match=r"has no member 'c\.txt'\. It has: a\.txt"):
        _read(archive, "c.txt")


@pytest.mark.parametrize(
    "name", ["../a.txt", "d/../../a.txt", "/etc/a.txt", "..\\a.txt", "C:/a.txt"]
)
def test_names_that_leave_the_archive_are_refused(tmp_path, name):
    archive = _zip(tmp_path / "a.zip", {"fine.txt": b"x", name: b"x"})
    with pytest.raises(DataError, match="points outside"):
        list_members(archive)
    with pytest.raises(DataError, match="points outside"):
        _read(archive, "fine.txt")


def test_symbolic_links_are_refused(tmp_path):
    info = zipfile.ZipInfo("a.txt")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = _zip(tmp_path / "a.zip", {info: b"/etc/passwd"})
    with pytest.raises(DataError, match="symbolic link"):
        _read(archive)


def test_encrypted_members_are_refused(tmp_path):
    path = _zip(tmp_path / "a.zip", {"a.txt": b"secret"}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"'a\.txt' is encrypted"):
        list_members(path)


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_decompression_bombs_are_refused(tmp_path, kind):
    bomb = bytes(101 * 2**20)
    path = tmp_path / f"bomb.{kind}"
    if kind == "zip":
        _zip(path, {"a.txt": bomb})
    else:
        path.write_bytes(gzip.compress(bomb))
    with pytest.raises(DataError, match="decompression bomb"):
        _read(path)


def test_a_declared_bomb_is_refused_before_it_is_read(tmp_path):
    archive = _zip(tmp_path / "a.zip", {"fine.txt": b"x", "bomb.txt": bytes(101 * 2**20)})
    with pytest.raises(DataError, match="decompression bomb"):
        list_members(archive)


def test_a_zip_that_understates_its_size_is_refused(tmp_path):
    path = _zip(tmp_path / "a.zip", {"a.txt": TEXT})
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(DataError, match="truncated or damaged"):
        _read(path)


@pytest.mark.parametrize("kind", ["zip", "gz"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_archives_are_refused(tmp_path, kind, share):
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        _zip(path, {"a.txt": TEXT})
    else:
        path.write_bytes(gzip.compress(TEXT))
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(DataError, match=rf"a\.{kind}: .*(truncated|damaged).*fetch it again"):
        _read(path)


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_damaged_data_is_refused(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    if kind == "zip":
        _zip(path, {"a.txt": TEXT}, zipfile.ZIP_STORED)
    else:
        path.write_bytes(gzip.compress(TEXT, compresslevel=0))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="truncated or damaged"):
        _read(path)


def test_missing_empty_and_directory(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.txt: no such file"):
        _read(tmp_path / "nowhere.txt")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DataError, match=r"empty\.txt: the file is empty"):
        _read(tmp_path / "empty.txt")
    with pytest.raises(DataError, match="is a directory"):
        _read(tmp_path)


def test_a_pipe_is_refused_since_it_can_be_read_once_only():
    reader, writer = os.pipe()
    os.write(writer, b"a line\n")
    os.close(writer)
    try:
        with pytest.raises(DataError, match="is a pipe or a device"):
            _read(f"/dev/fd/{reader}")  # as a shell hands over <(command)
        assert os.read(reader, 100) == b"a line\n"
    finally:
        os.close(reader)


@pytest.mark.parametrize("kind", ["zip", "gz"])
def test_a_name_that_promises_what_the_file_is_not(tmp_path, kind):
    path = tmp_path / f"page.{kind}"
    path.write_text("<html>Not found</html>")
    with pytest.raises(DataError, match=rf"is not a \.{kind} file"):
        _read(path)
