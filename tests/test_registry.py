"""Encoders, objectives and data sets by name: ours, a user's own, and those of other packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from fresh_python import loaded_after

from dsa_keras.datasets import DATASETS
from dsa_keras.encoders import ENCODERS
from dsa_keras.errors import ConfigError
from dsa_keras.heads import HEADS
from dsa_keras.objectives import OBJECTIVES
from dsa_keras.registry import Registry, import_module, of_json, register

ALL = [ENCODERS, HEADS, OBJECTIVES, DATASETS]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to import from; what is imported from it is forgotten."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def things(place):
    """A registry of the package `things`, which has two modules and a package in it."""
    written(place / "things" / "__init__.py", REGISTRY)
    written(place / "things" / "round.py", thing("Ball"))
    written(place / "things" / "square.py", thing("Box"))
    written(place / "things" / "building" / "__init__.py", thing("Crane"))
    return importlib.import_module("things").THINGS


REGISTRY = """
from dsa_keras.registry import Registry, register

THINGS = Registry("thing", __name__)
"""


def thing(name, registered_as=None):
    return f"""
from things import THINGS, register

@register(THINGS, {(registered_as or name).lower()!r})
class {name}:
    pass

class Plain:
    pass
"""


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    importlib.invalidate_caches()


def installed(place, entries):
    """A package whose metadata names entry points, as pip leaves it."""
    folder = place / "other_things-1.0.dist-info"
    written(folder / "METADATA", "Metadata-Version: 2.1\nName: other-things\nVersion: 1.0\n")
    lines = "\n".join(f"{name} = {where}" for name, where in entries.items())
    written(folder / "entry_points.txt", f"[things]\n{lines}\n")


# Ours.


def test_the_modules_of_the_package_register_themselves_when_first_asked(things):
    assert "things.round" not in sys.modules
    assert things.names() == ("ball", "box")
    assert things.get("ball").__name__ == "Ball"
    assert things.get("ball").name == "ball"
    assert [one.__name__ for one in things] == ["Ball", "Box"]
    assert "things.building" not in sys.modules, "a package in the package was imported"


def test_unknown_names_suggest_the_nearest(things):
    with pytest.raises(ConfigError, match=r"unknown thing 'bal'\. Did you mean 'ball'\? Known: ba"):
        things.get("bal")
    with pytest.raises(ConfigError, match=r"unknown thing 'zzz'\. Known: ball, box\. One of your"):
        things.get("zzz")
    assert things.names() == ("ball", "box")


@pytest.mark.parametrize("name", ["", "a:b", " ball", "ball\n"])
def test_names_that_cannot_be(things, name):
    with pytest.raises(ConfigError, match="cannot be the name of a thing"):
        things.add(name, object)


def test_a_name_is_taken_once(things, place):
    class Ball:
        pass

    with pytest.raises(ConfigError, match="there is a thing 'ball' already"):
        register(things, "ball")(Ball) if things.names() else None
    assert things.get("ball").__module__ == "things.round"
    # A module that is imported again, or a cell of a notebook, replaces what it registered.
    first = things.get("ball")
    importlib.reload(sys.modules["things.round"])
    assert things.get("ball") is not first
    things.add("box", things.get("box"))


def test_things_that_are_no_classes_have_names_too(things):
    """As the entries of data sets."""
    one, other = object(), object()
    things.add("one", one)
    things.add("one", one)
    with pytest.raises(ConfigError, match="there is a thing 'one' already"):
        things.add("one", other)
    with pytest.raises(ConfigError, match="there is a thing 'one' already"):
        things.add("one", dict)
    with pytest.raises(ConfigError, match="there is a thing 'ball' already"):
        things.add("ball", one) if things.names() else None


def test_messages_have_the_right_article():
    for registry, words in ((ENCODERS, "an encoder"), (DATASETS, "a data set"), (HEADS, "a head")):
        with pytest.raises(ConfigError, match=f"'a:b' cannot be the name of {words}$"):
            registry.add("a:b", object())


@pytest.mark.parametrize("registry", ALL, ids=lambda one: one.kind)
def test_our_registries_hold_what_their_files_register(registry):
    folder = Path(importlib.import_module(registry.package).__file__).parent
    for name in registry.names():
        found = registry.get(name)
        assert found is registry.registered(name)
        assert found.name == name
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert all(f"{registry.package}.{name}" in sys.modules for name in modules)


@pytest.mark.parametrize("package", ["encoders", "heads", "objectives", "datasets"])
def test_names_are_known_without_tensorflow(package):
    name = package.upper()
    script = f"from dsa_keras.{package} import {name}; assert {name}.names()"
    assert loaded_after(script, ["tensorflow", "keras", "matplotlib"]) == []


# A user's own, by module.


def test_a_module_and_a_name_import_what_it_registers(things, place):
    written(place / "mine" / "__init__.py", "")
    written(place / "mine" / "own.py", thing("Wheel"))
    found = things.get("mine.own:Wheel")
    assert found is sys.modules["mine.own"].Wheel
    assert things.get("wheel") is found
    assert things.names() == ("ball", "box", "wheel")
    assert things.get("things.round:Ball") is things.get("ball")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "own:Plain",
            "own:Plain: it is not registered as a thing. Register it with register_thing",
        ),
        ("own:Wheels", "own:Wheels: there is no 'Wheels' in own"),
        ("own:", "own:: there is no '' in own"),
        ("nothing:Wheel", r"nothing: cannot be imported \(ModuleNotFoundError: No module named"),
        (":Wheel", r"cannot be imported \(ValueError: Empty module name\)"),
        (".own:Wheel", r"\.own: cannot be imported \(TypeError: "),
        ("broken:Wheel", r"broken: cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("worse:Wheel", r"worse: cannot be imported \(SyntaxError: "),
        ("taken:Own", r"taken: cannot be imported \(ConfigError: there is a thing 'ball'"),
    ],
)
def test_what_a_module_does_not_have_is_told_in_one_line(things, place, reference, message):
    things.names()
    written(place / "own.py", thing("Wheel"))
    written(place / "broken.py", "1 / 0")
    written(place / "worse.py", "class")
    written(place / "taken.py", thing("Own", registered_as="ball"))
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        things.get(reference)
    assert "\n" not in str(caught.value)


def test_modules_of_the_current_folder_are_found(place, monkeypatch):
    folder = place / "elsewhere"
    written(folder / "of_the_current_folder.py", "VALUE = 7")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    assert import_module("of_the_current_folder").VALUE == 7


def test_a_name_from_a_file_imports_nothing(things, place):
    written(place / "evil.py", f"open({str(place / 'was here')!r}, 'w')")
    for call in (
        lambda: things.registered("evil:Thing"),
        lambda: of_json(things, {"name": "evil:Thing"}),
    ):
        with pytest.raises(ConfigError, match="unknown thing 'evil:Thing'"):
            call()
    assert "evil" not in sys.modules
    assert not (place / "was here").exists()


# Entry points of installed packages.


def test_an_installed_package_brings_things_along(things, place):
    written(place / "other_things.py", thing("Kite") + "\nSTRING = THINGS.add('string', object())")
    installed(place, {"kite": "other_things:Kite", "string": "other_things:STRING"})
    assert things.names() == ("ball", "box")
    assert "other_things" not in sys.modules, "it was imported before anybody asked for it"
    kite = things.get("kite")
    assert kite is sys.modules["other_things"].Kite
    assert things.get("string") is sys.modules["other_things"].STRING
    assert things.names() == ("ball", "box", "kite", "string")


def test_an_entry_point_does_not_take_the_place_of_ours(things, place):
    written(place / "other_things.py", "class Ball: pass")
    installed(place, {"ball": "other_things:Ball"})
    assert things.get("ball").__module__ == "things.round"


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("nothing:Kite", r"cannot be loaded \(ModuleNotFoundError: No module named 'nothing'\)"),
        ("broken:Kite", r"cannot be loaded \(ZeroDivisionError: division by zero\)"),
        ("other_things:Kites", r"cannot be loaded \(AttributeError: "),
        ("other_things:Kite", "registers no thing 'kite'"),
    ],
)
def test_an_entry_point_that_cannot_be_used_is_told(things, place, where, problem):
    written(place / "other_things.py", "class Kite: pass")
    written(place / "broken.py", "1 / 0")
    installed(place, {"kite": where})
    with pytest.raises(ConfigError, match=f"^{where}: {problem}.* Mend or remove other-things"):
        things.get("kite")
    assert things.names() == ("ball", "box")


# JSON.


def test_what_is_no_object_of_a_name_and_settings():
    for values in (None, 5, [1], "cnn", [["name", "cnn"]]):
        with pytest.raises(ConfigError, match="encoder must be an object with a name and settings"):
            of_json(ENCODERS, values)
    for values in ({}, {"name": None}, {"name": ["cnn"]}, {"name": {"cnn": 1}}):
        with pytest.raises(ConfigError, match="unknown encoder"):
            of_json(ENCODERS, values)
    values = {"name": "cnn", "cnn_filters": 3}
    assert of_json(ENCODERS, values).cnn_filters == 3
    assert values == {"name": "cnn", "cnn_filters": 3}


def test_a_failed_import_of_ours_is_not_forgotten(things, place):
    """Asked again, a registry that could not be filled says so again."""
    written(place / "things" / "broken.py", "1 / 0")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            things.names()
    (place / "things" / "broken.py").unlink()
    importlib.invalidate_caches()
    assert things.names() == ("ball", "box")
    assert isinstance(things, Registry)
