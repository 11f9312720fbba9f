"""Left of a tilde: a parameter, then it is a prior, or else a column of the data."""

import pytest

from odinfer.errors import InputError
from odinfer.model.distributions import Column, arguments_of, left_out
from odinfer.model.expression import Source
from odinfer.model.parser import parse
from odinfer.model.statements import read_statements
from odinfer.noise import FAMILIES

BASE = "x' = -k*x + a\nflow = k*x\n"


def message(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value).startswith("line ")
    assert str(caught.value).isprintable()
    return str(caught.value)


def shown(text: str) -> list[object]:
    """The arguments of the only column of a model, names and numbers as such."""
    e = parse(BASE + text)
    (column,) = e.columns
    return [e.code[i][1][0] if e.code[i][0] in ("name", "number") else "..." for i in column.arguments]


def test_what_is_no_parameter_is_a_column():
    e = parse(BASE + "x ~ normal(x, 0.2); flow ~ poisson(flow); z ~ laplace(2*flow, b); k ~ normal(2, 3)")
    assert [(c.name, c.family, c.line) for c in e.columns] == [
        ("x", "normal", 3),
        ("flow", "poisson", 3),
        ("z", "laplace", 3),
    ]
    assert isinstance(e.columns[0], Column)
    assert e.prior == {"k": ("normal", 2.0, 3.0)}
    assert e.parameters == ("k", "a", "b")


def test_parameters_of_the_noise_may_have_priors_before_or_after():
    for text in ("x ~ normal(x, s); s ~ lognormal(1, 2)", "s ~ lognormal(1, 2); x ~ normal(x, s)"):
        e = parse(BASE + text)
        assert (e.prior, [c.name for c in e.columns]) == ({"s": ("lognormal", 1.0, 2.0)}, ["x"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x ~ normal(x)", ["x"]),
        ("y ~ lognormal(x)", ["x"]),
        ("x ~ normal(x, 0.2)", ["x", 0.2]),
        ("x ~ normal(x, s0 + s1*x)", ["x", "..."]),
        ("x ~ normal(mean = x, sd = s)", ["x", "s"]),
        ("x ~ normal(sd = s, mean = x)", ["x", "s"]),
        ("x ~ student(x)", ["x", "sd(x)", 4.0]),
        ("x ~ student(x, s)", ["x", "s", 4.0]),
        ("x ~ student(x, df = 7)", ["x", "sd(x)", 7.0]),
        ("y ~ laplace(x)", ["x", "b(y)"]),
        ("y ~ negbinomial(x)", ["x", "k(y)"]),
        ("y ~ binomial(x, 20)", ["x", 20.0]),
        ("y ~ poisson(x)", ["x"]),
    ],
)
def test_arguments_left_out_are_profiled_defaults_or_parameters(text, expected):
    assert shown(text) == expected


def test_a_parameter_that_stands_for_an_argument_is_positive_and_can_be_declared_about():
    e = parse(BASE + "y ~ negbinomial(x)")
    assert (e.scale["k(y)"], e.bounds["k(y)"][0], e.parameters[-1]) == ("log", 0.0, "k(y)")
    e = parse(BASE + "y ~ negbinomial(x); 1 < k(y) < 9; start k(y) = 2; k(y) ~ lognormal(2, 1); local k(y)")
    assert (e.bounds["k(y)"], e.start["k(y)"], e.scale["k(y)"], e.local) == ((1.0, 9.0), 2.0, "log", ("k(y)",))
    assert parse(BASE + "y ~ negbinomial(x); fixed k(y) = 2").fixed == {"k(y)": 2.0}


def test_a_name_as_argument_of_the_noise_is_positive_unless_its_lower_bound_is_declared():
    assert parse(BASE + "x ~ normal(x, s)").scale == {"s": "log"}
    assert parse(BASE + "x ~ normal(x, s); s < 3").bounds == {"s": (0.0, 3.0)}
    assert parse(BASE + "x ~ normal(x, s); 0 < s < 3").scale == {}
    assert parse(BASE + "x ~ normal(x, s); linear s").scale == {"s": "linear"}
    assert parse(BASE + "x ~ normal(x, flow)").scale == {}


def test_a_column_may_depend_on_inputs_initial_values_and_time():
    e = parse(BASE + "input u; y ~ normal(u*x/x(0) + t, 1)")
    assert (e.inputs, e.parameters) == (("u",), ("k", "a", "x(0)"))


def test_arguments_are_in_the_order_of_the_family():
    given = read_statements("y ~ student(df = 3, mean = x)").given["distribution"]["y"]
    found = arguments_of("y", given)
    assert list(found) == ["mean", "sd", "df"]
    assert isinstance(found["mean"], Source)
    assert left_out("y", found) == ["sd(y)"]


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_of_noise_can_be_written(name):
    family = FAMILIES[name]
    for given in range(family.least, len(family.arguments) + 1):
        e = parse(BASE + f"y ~ {name}({', '.join(['x', *'vw'][:given])})")
        assert e.columns[0].family == name
        assert len(e.columns[0].arguments) == (1 if family.profiled and given == 1 else len(family.arguments))


BAD = [
    ("z ~ poison(x)", "line 3: 'poison' is no known distribution; did you mean 'poisson'?"),
    ("z ~ gaussian(x)", "choose from: normal, lognormal"),
    ("z ~ uniform(0, 1)", "uniform is a prior, and 'z' is no parameter"),
    ("z ~ poisson(x, 3)", "has 2 arguments; write poisson(mean)"),
    ("z ~ poisson()", "too few arguments; write poisson(mean)"),
    ("z ~ binomial(x)", "too few arguments; write binomial(mean, n)"),
    ("z ~ normal(sd = 3)", "too few arguments"),
    ("z ~ normal(x, q = 3)", "wrong or repeated 'q'; write normal(mean, sd)"),
    ("z ~ normal(x, mean = 3)", "wrong or repeated 'mean'"),
    ("z ~ normal(mean = x, 3)", "wrong or repeated 'sd'"),
    ("z ~ normal(x, 0)", "'0' is the sd of 'z', which must be positive"),
    ("z ~ negbinomial(x, -1)", "'-1' is the k of 'z'"),
    ("kk ~ normal(1, 2)", "is no prior ('kk' is no parameter) and predicts no column"),
    ("z ~ normal(2*t, 1)", "(no state or parameter is in it)"),
    ("z ~ normal(z, 1)", "predicts 'z' by itself, which is no state, definition or input"),
    ("flows ~ normal(flows, 1)", "did you mean 'flow'?"),
    ("t ~ normal(x, 1)", "'t' is a reserved word"),
    ("time ~ normal(x, 1)", "'time' is known"),
    ("input u; u ~ normal(u*x, 1)", "'u' is known, as an input or the time"),
    ("x ~ normal(x)\nx ~ normal(x)", "line 4: 'x' already has 'distribution' on line 3"),
    ("a ~ poisson(3)", "'poisson' is no known prior of the parameter 'a'; choose from: normal, lognormal, near"),
    ("a ~ normal(x, 3)", "'x' is not a number; 'a' is a parameter, so this is its prior"),
    ("a ~ normal(mean = 1, sd = 3)", "write normal(mean, sd > 0)"),
    ("a ~ normal()", "is no prior; write normal(mean, sd > 0)"),
    ("sd(x) ~ normal(1, 3)", "prior of 'sd(x)', which is not estimated as such"),
    ("z ~ normal(x > 0, 3)", "is a condition"),
]


@pytest.mark.parametrize(("text", "expected"), BAD, ids=range(len(BAD)))
def test_bad_distributions_give_one_clear_line(text, expected):
    assert expected in message(BASE + text)
