"""Broken and hostile SBML and PEtab files are refused in one line within seconds, whatever is in them."""

import contextlib
import itertools
import os
import time

import pytest

from odinfer.errors import InputError
from odinfer.io.petab_reader import read_petab
from odinfer.io.sbml_reader import read_sbml
from sbml_files import TABLES, event, math, petab, sbml

SECONDS = 4.0  # of CPU time for one file; 2 where nothing else runs
PARAMETER = '<parameter id="y" constant="false"/>'


def rule(name, content):
    return f'<assignmentRule variable="{name}">{math(content)}</assignmentRule>'


def function(name, content):
    body = f"<lambda><bvar><ci>x</ci></bvar>{content}</lambda>"
    return f'<functionDefinition id="{name}">{math(body)}</functionDefinition>'


def nested(count, before, after, inner="<ci>A</ci>"):
    return before * count + inner + after * count


def of_rule(content):
    return {"MORE_PARAMETERS": PARAMETER, "RULES": rule("y", content)}


def doubled_functions():
    calls = [function("f0", "<apply><plus/><ci>x</ci><ci>x</ci></apply>")]
    for i in range(1, 40):
        calls.append(function(f"f{i}", f"<apply><ci>f{i - 1}</ci><apply><ci>f{i - 1}</ci><ci>x</ci></apply></apply>"))
    return {"FUNCTIONS": "".join(calls), **of_rule("<apply><ci>f39</ci><ci>A</ci></apply>")}


def doubled_rules():
    names = [f"y{i}" for i in range(40)]
    rules = [rule("y0", "<ci>A</ci>")]
    rules += [rule(n, f"<apply><plus/><ci>{b}</ci><ci>{b}</ci></apply>") for b, n in itertools.pairwise(names)]
    start = f'<initialAssignment symbol="B">{math("<ci>y39</ci>")}</initialAssignment>'
    parameters = "".join(f'<parameter id="{name}" constant="false"/>' for name in names)
    return {"MORE_PARAMETERS": parameters, "RULES": "".join(rules), "STARTS": start}


def repeated(word):
    """A function of two arguments that has itself as both, many times."""
    text = "<ci>A</ci>"
    for _ in range(12):
        text = f"<apply><{word}/>{text}{text}</apply>"
    return text


HARMLESS = {  # large when written out in full, but not as it is read
    "rules that double inside an initial assignment": doubled_rules(),
    "200 nested hyperbolic functions": of_rule(nested(80, "<apply><arcsinh/>", "</apply>")),
}
HOSTILE = {
    "500,000 nested elements": {"FUNCTIONS": nested(500_000, "<a>", "</a>")},
    "200,000 nested applications": of_rule(nested(200_000, "<apply><minus/>", "</apply>")),
    "900 nested applications": of_rule(nested(900, "<apply><exp/>", "</apply>")),
    "functions that double": doubled_functions(),
    "a function that calls itself": {
        "FUNCTIONS": function("f", "<apply><ci>f</ci><ci>x</ci></apply>"),
        **of_rule("<apply><ci>f</ci><ci>A</ci></apply>"),
    },
    "nested remainders": of_rule(nested(30, "<apply><rem/>", "<cn>3</cn></apply>")),
    "nested exclusive alternatives": of_rule(repeated("xor") + ""),
    "an infinite value": {"MORE_PARAMETERS": '<parameter id="y" value="INF" constant="true"/>'},
    "an infinite number": of_rule('<cn type="e-notation">1<sep/>999</cn>'),
    "a rule of nothing": {"RULES": rule("nothing", "<cn>1</cn>")},
    "an event of nothing": {"EVENTS": event("<apply><gt/><ci>A</ci><cn>3</cn></apply>", state="nothing")},
    "a rule that needs itself": of_rule("<apply><plus/><ci>y</ci><cn>1</cn></apply>"),
    "an unknown name": of_rule("<ci>nobody</ci>"),
    "a function without body": {"FUNCTIONS": function("f", ""), **of_rule("<apply><ci>f</ci><ci>A</ci></apply>")},
    "a declared entity": {"FUNCTIONS": "]]><!DOCTYPE a>"},
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_models_are_refused_at_once(tmp_path, what):
    path = sbml(tmp_path, **HOSTILE[what])
    begin = time.process_time()
    with pytest.raises(InputError) as found:
        read_sbml(path)
    assert time.process_time() - begin < SECONDS
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 500


@pytest.mark.parametrize("what", HARMLESS)
def test_what_shares_its_parts_is_read_at_once(tmp_path, what):
    path = sbml(tmp_path, **HARMLESS[what])
    begin = time.process_time()
    assert len(read_sbml(path).text) < 20_000
    assert time.process_time() - begin < SECONDS


def test_submodels_that_double_are_refused(tmp_path):
    space = 'xmlns:comp="http://www.sbml.org/sbml/level3/version1/comp/version1"'
    core = 'xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"'

    def model(i):
        ref = f'comp:modelRef="m{i + 1}"'
        pair = f'<comp:submodel comp:id="a" {ref}/><comp:submodel comp:id="b" {ref}/>'
        return f"<comp:listOfSubmodels>{pair}</comp:listOfSubmodels>"

    definitions = "".join(f'<comp:modelDefinition id="m{i}">{model(i)}</comp:modelDefinition>' for i in range(1, 40))
    path = tmp_path / "bomb.xml"
    path.write_text(
        f'<sbml {core} {space} comp:required="true"><model id="m0">{model(0)}</model><comp:listOfModelDefinitions>'
        f'{definitions}<comp:modelDefinition id="m40"/></comp:listOfModelDefinitions></sbml>'
    )
    with pytest.raises(InputError, match="more than 1000 submodels"):
        read_sbml(path)


def test_pipes_devices_and_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    for path in (tmp_path / "pipe.xml", "/dev/zero", tmp_path, "a\0b"):
        with pytest.raises(InputError, match="cannot read"):
            read_sbml(path)
        with pytest.raises(InputError, match="cannot read"):
            read_petab(path)


def bomb():
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30))]
    return "\n".join(["format_version: 1", *lines])


YAML = {
    "aliases": bomb(),
    "a list": "- 1",
    "deep": "format_version: 1\nproblems: " + "[" * 30_000,
    "a number of files": "format_version: 1\nparameter_file: 3\nproblems: [{}]",
    "problems of text": "format_version: 1\nproblems: abc",
    "a tag": "format_version: !!python/object/apply:os.system ['true']",
    "another file": "format_version: 1\nparameter_file: ../secret.tsv\nproblems: [{}]",
    "an absolute file": "format_version: 1\nparameter_file: /etc/passwd\nproblems: [{}]",
    "nothing": "",
}


@pytest.mark.parametrize("what", YAML)
def test_hostile_problems_are_refused_at_once(tmp_path, what):
    (tmp_path / "secret.tsv").write_text("parameterId\nHIDDEN\n")
    folder = tmp_path / "problem"
    folder.mkdir()
    path = petab(folder)
    path.write_text(YAML[what])
    begin = time.process_time()
    with pytest.raises(InputError) as found:
        read_petab(path)
    assert time.process_time() - begin < SECONDS
    assert "HIDDEN" not in str(found.value)
    assert "root:" not in str(found.value)


CELLS = (
    "",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "x" * 5000,
    "\0",
    '"',
    "1;2;3;4",
    "(((",
    "a = b",
    "__import__('os')",
    "t",
    "-",
)


@pytest.mark.filterwarnings("ignore::odinfer.errors.InputWarning")
@pytest.mark.parametrize("table", TABLES)
def test_whatever_stands_in_a_cell_is_read_or_refused(tmp_path, table):
    head, *rows = TABLES[table].splitlines()
    for column in range(len(head.split("\t"))):
        for cell in CELLS[column % 2 :: 2]:
            cells = rows[0].split("\t")
            cells[column] = cell
            text = "\n".join([head, "\t".join(cells), *rows[1:], ""])
            with contextlib.suppress(InputError):
                read_petab(petab(tmp_path, {table: text}))
