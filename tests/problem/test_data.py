"""Data: what is accepted, what is refused, and in which words."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odinfer.data.data import Data, Experiment, check_counts, split_windows
from odinfer.data.dose import Dose
from odinfer.data.series import distinct_times
from odinfer.errors import InputError, InputWarning

T = np.arange(5.0)
Y = np.column_stack([T**2, 1 - T])
NAN = np.nan
fuzz = settings(deadline=None, max_examples=60)


def make(t=T, y=Y, states=("A", "B"), **kwargs) -> Data:
    return Data(t, y, states=states, **kwargs)


def assert_same(one: Data, other: Data) -> None:
    np.testing.assert_equal(*([d.states, d.inputs, [vars(e) for e in d.experiments]] for d in (one, other)))


# --- from arrays


def test_arrays_are_copied_float64_and_read_only():
    t, y, u = np.arange(5), np.arange(10).reshape(5, 2), np.arange(5)
    data = make(t, y, inputs={"u": u})
    for array in (data.t, data.y, *data.experiments[0].u["u"]):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    t[0] = y[0, 0] = u[0] = 99
    assert (data.t[0], data.y[0, 0], data.experiments[0].u["u"][1][0]) == (0, 0, 0)


def test_data_are_frozen():
    with pytest.raises(AttributeError):
        make().states = ("B", "A")
    with pytest.raises(AttributeError):
        make().experiments[0].name = "x"


def test_data_survive_pickling():
    data = make(inputs={"u": T})
    assert_same(pickle.loads(pickle.dumps(data)), data)


def test_a_single_state_may_be_one_dimensional():
    assert make(T, T**2, ["A"]).y.shape == (5, 1)
    assert make(T, T**2, "A").states == ("A",)


def test_masked_and_none_values_are_not_observed():
    masked = np.ma.masked_equal([1, 2, 3, 4, 99], 99)
    assert make(T, masked, ["A"]).n_observed("A") == 4
    assert make(T, [1, 2, None, 4, 5], ["A"]).n_observed("A") == 4


def test_unsorted_times_are_sorted_with_a_warning_and_the_arrays_of_the_caller_stay():
    order = [3, 0, 4, 1, 2]
    t, y = T[order], Y[order]
    with pytest.warns(InputWarning, match="not increasing; they were sorted"):
        data = make(t, y)
    assert_same(data, make())
    np.testing.assert_array_equal(t, T[order])


def test_unobserved_rows_are_dropped_but_their_inputs_are_kept():
    y = Y.copy()
    y[2] = NAN
    data = make(y=y, inputs={"u": 10 * T})
    assert data.t.tolist() == [0, 1, 3, 4]
    assert data.experiments[0].u["u"][0].tolist() == T.tolist()


def test_an_input_may_have_its_own_times_in_any_order():
    with pytest.warns(InputWarning, match="input 'u'"):
        data = make(inputs={"u": ([2, 0], [5, 3])})
    assert data.inputs == ("u",)
    np.testing.assert_array_equal(data.experiments[0].u["u"], [[0, 2], [3, 5]])


def test_a_missing_input_value_is_no_sample():
    times, values = make(inputs={"u": [0, NAN, 2, 3, 4]}).experiments[0].u["u"]
    assert times.tolist() == values.tolist() == [0, 2, 3, 4]


def test_replicates_are_averaged_per_state_over_what_is_observed():
    t = [0, 1, 1, 2, 3]
    y = [[0, 0], [1, 5], [4, NAN], [2, 2], [3, 3]]
    data = make(t, y, replicates="mean")
    assert data.t.tolist() == [0, 1, 2, 3]
    assert data.y[1].tolist() == [2.5, 5]


def test_replicates_are_kept_as_observations_at_nearly_the_same_time():
    t = [0, 1, 1, 1, 2, 3]
    y = [[0, 0], [1, 5], [4, NAN], [2, 6], [2, 2], [3, 3]]
    with pytest.warns(InputWarning, match="several values of 'A', 'B' at one time are taken as independent"):
        data = make(t, y, inputs={"u": [0, 7, 7, 7, 7, 7]})
    np.testing.assert_allclose(data.t, t, rtol=0, atol=1e-8)
    assert (np.diff(data.t) > 0).all()
    np.testing.assert_array_equal(data.y, [[0, 0], [1, 5], [4, 6], [2, NAN], [2, 2], [3, 3]])
    assert (data.n_observed("A"), data.n_observed("B")) == (6, 5)
    assert distinct_times(data.t).tolist() == [0, 1, 2, 3]
    assert data.experiments[0].u["u"][0].tolist() == [0, 1, 2, 3]


def test_times_that_are_equal_up_to_rounding_are_one_time():
    data = make([0, 0.1 + 0.2, 0.3, 1, 2], [[0, 0], [1, NAN], [NAN, 5], [2, 2], [3, 3]])
    assert data.t.tolist() == [0, 0.3, 1, 2]
    assert data.y[1].tolist() == [1, 5]


def test_times_in_seconds_of_the_era_and_over_many_decades_stay_apart():
    assert len(make(1.7e9 + T).t) == 5
    assert len(make(10.0 ** np.array([-9, -6, -1, 5, 11])).t) == 5
    with pytest.warns(InputWarning, match="several values"):
        t = make(10.0 ** np.array([-3, -3, -1, 5, 6])).t
    assert 0 < t[1] - t[0] < 0.01 * t[0] * 10


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.1, 0.2, -999, 0.4, -999], "state 'A' is -999 2 times, far from its other values; if that means missing"),
        ([5, -99, 60, 80, 90], "state 'A' is -99 1 time, far"),
        ([1, 2, 3, 9999, 4], "state 'A' is 9999 1 time, far"),
    ],
)
def test_a_number_that_means_missing_is_a_warning(values, words):
    with pytest.warns(InputWarning, match=words):
        make(T, values, ["A"])
    with pytest.warns(InputWarning, match=words.replace("state 'A'", "input 'u'")):
        make(inputs={"u": values})


@pytest.mark.parametrize("values", [[-150, -99, 3, 40, 90], [700, 800, 999, 900, 650], [-99, -98, -97, -99, -99]])
def test_such_a_number_among_its_like_is_none(values):
    make(T, values, ["A"])


def test_rows_at_one_time_with_different_states_are_no_replicates():
    t = [0, 1, 1, 2, 3]
    y = [[0, 0], [1, NAN], [NAN, 5], [2, 2], [3, 3]]
    data = make(t, y, inputs={"u": [0, 7, 7, 7, 7]})
    assert data.y[1].tolist() == [1, 5]
    assert data.experiments[0].u["u"][1].tolist() == [0, 7, 7, 7]


def test_the_mean_of_huge_replicates_is_finite():
    data = make([0, 1, 2, 3, 3], [1, 2, 3, 1.7e308, 1.7e308], ["A"], replicates="mean")
    assert data.y[3, 0] == 1.7e308


def test_a_constant_state_is_a_warning():
    with pytest.warns(InputWarning, match="'B' is constant: each observation is 3"):
        make(y=np.column_stack([T, np.full(5, 3.0)]))


def with_value(value, row=2, column=1):
    y = Y.copy()
    y[row, column] = value
    return y


REFUSED = {
    "t is not 1-D": ({"t": T[:, None]}, r"t has shape \(5, 1\)"),
    "y is 3-D": ({"y": Y[..., None]}, r"y \(5, 2, 1\); expected \(N,\) and \(N, 2\)"),
    "y is 1-D for two states": ({"y": T}, r"y \(5,\)"),
    "y is a number": ({"y": 1.0}, r"y \(\)"),
    "y is transposed": ({"y": Y.T}, r"y \(2, 5\).*a row per time"),
    "lengths differ": ({"t": T[:4]}, r"t has shape \(4,\) and y \(5, 2\)"),
    "a state without a column": ({"states": ["A", "B", "C"]}, r"\(N, 3\)"),
    "duplicate state": ({"states": ["A", "A"]}, "state 'A' is there twice"),
    "no states": ({"states": []}, "no state"),
    "empty name": ({"states": ["A", " "]}, "cannot be a name"),
    "name with a newline": ({"states": ["A", "B\nC"]}, r"'B\\nC' cannot be a name"),
    "name is a number": ({"states": ["A", 1]}, "state '1' cannot be a name"),
    "NaN time": ({"t": [0, 1, NAN, 3, 4]}, "t is nan in row 2"),
    "infinite time": ({"t": [0, 1, 2, 3, np.inf]}, "t is inf in row 4"),
    "infinite value": ({"y": with_value(-np.inf)}, "state 'B' is infinite in row 2"),
    "all missing": ({"y": Y * NAN}, "all values are missing"),
    "no rows": ({"t": [], "y": np.empty((0, 2))}, "all values are missing"),
    "duplicate times": (
        {"t": [0, 1, 1, 2, 3], "replicates": "error"},
        'has 2 values at time 1; .*replicates="mean" or --replicates mean',
    ),
    "times equal up to rounding": (
        {"t": [0, 0.1 + 0.2, 0.3, 1, 2], "replicates": "error"},
        "'A' has 2 values at time 0.3; ",
    ),
    "replicates at one time only": ({"t": T * 0}, "all values are at one time, so replicates cannot be kept"),
    "replicates at times that are very close": (
        {"t": [0, 0, 1e-13, 1, 2]},
        "times are very close, so replicates cannot be kept; average them",
    ),
    "times far from zero": (
        {"t": 1e15 + T},
        r"the times 1000000000000000.0 to 1000000000000004.0 differ in their last digits only; count from the first",
    ),
    "unknown policy": ({"replicates": "men"}, "unknown replicates 'men'; did you mean 'mean'"),
    "text": ({"y": [["1", "2"]] * 5}, "y is not an array of numbers"),
    "complex": ({"y": Y + 0j}, "y is not an array of numbers"),
    "ragged": ({"y": [[1, 2], [3]]}, "y is not an array of numbers"),
    "huge integer": ({"t": [0, 1, 2, 3, 10**400]}, "t is not an array of numbers"),
    "input is a state": ({"inputs": {"A": T}}, "'A' is both a state and an input"),
    "input of another length": ({"inputs": {"u": T[:3]}}, r"t has shape \(5,\) and input 'u' \(3, 1\)"),
    "infinite input": ({"inputs": {"u": [0, 1, np.inf, 3, 4]}}, "input 'u' is infinite in row 2"),
    "empty input": ({"inputs": {"u": T * NAN}}, "input 'u' has no values"),
    "input with two values at a time": (
        {"inputs": {"u": ([0, 0], [1, 2])}},
        "input 'u' has 2 values at time 0",
    ),
    "sd of zero": ({"sd": with_value(0.0)}, "sd of 'A' in row 0 must be positive, not 0.0"),
    "negative sd": ({"sd": {"B": [1, 2, -3, 4, 5]}}, "sd of 'B' in row 2 must be positive, not -3.0"),
    "infinite sd": ({"sd": {"B": [1, 2, np.inf, 4, 5]}}, "sd of 'B' in row 2 must be a finite number"),
    "sd of another shape": ({"sd": T}, r"sd has shape \(5,\) where y has \(5, 2\); give a value per observation"),
    "sd of another length": ({"sd": {"A": T[:4]}}, r"sd has shape \(4,\) where y has \(5, 2\)"),
    "sd of nothing": ({"sd": {"C": T}}, "sd: there are no data of 'C'; choose from: A, B"),
    "sd as text": ({"sd": {"A": list("abcde")}}, "sd of 'A' is not an array of numbers"),
    "half a limit": ({"limit": with_value(0.5) * 0 + 0.5}, "limit of 'A' in row 0 is 0.5; it is -1 .the true value"),
    "means of known sd": ({"sd": Y * 0 + 1, "replicates": "mean"}, "with standard deviations by row cannot be averag"),
    "means of limits": ({"limit": Y * 0 - 1, "replicates": "mean"}, "with limits of detection cannot be averaged; kee"),
    "negative dose": ({"doses": [(0, -1)]}, "experiment '1': the amount of a dose must be positive, not -1"),
    "input at no time": ({"inputs": {"u": ([0, NAN], [1, 2])}}, "t is nan in row 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case):
    arguments, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as caught:
        make(**arguments)
    assert len(str(caught.value).splitlines()) == 1


# --- several experiments, selection


def test_join_aligns_the_states_and_names_the_experiments():
    swapped = make(y=2 * Y[:, ::-1], states=["B", "A"])
    data = Data.join({"low dose": make(), "high dose": swapped})
    assert [e.name for e in data.experiments] == ["low dose", "high dose"]
    np.testing.assert_array_equal(data.experiments[1].y, 2 * Y)
    assert data.n_observed("A") == 10
    assert data.t is data.experiments[0].t
    assert data.y is data.experiments[0].y


def test_joined_data_can_be_joined():
    pair = Data.join({"a": make(), "b": make()})
    assert [e.name for e in Data.join({"x": pair, "y": make()}).experiments] == ["x/a", "x/b", "y"]


def test_join_refuses_other_states_other_inputs_and_nothing():
    with pytest.raises(InputError, match="experiment 'y' has not just 'A', 'B'"):
        Data.join({"x": make(), "y": make(states=["A", "C"])})
    with pytest.raises(InputError, match="'x', 'y' differ in their inputs"):
        Data.join({"x": make(), "y": make(inputs={"u": T})})
    with pytest.raises(InputError, match="no experiment"):
        Data.join({})


def test_select_orders_the_columns_and_drops_rows_without_observations():
    data = make(y=with_value(NAN))
    assert data.select(["B", "A"]).states == ("B", "A")
    assert data.select(["B"]).t.tolist() == [0, 1, 3, 4]
    np.testing.assert_array_equal(data.select(["B", "A"]).y, with_value(NAN)[:, ::-1])
    assert data.n_observed("B") == 4


def test_select_refuses_unknown_and_duplicate_states():
    with pytest.raises(InputError, match="'glucse'; did you mean 'glucose'"):
        make(states=["glucose", "B"]).select(["glucse"])
    with pytest.raises(InputError, match="choose from: A, B"):
        make().n_observed("zzz")
    with pytest.raises(InputError, match="twice"):
        make().select(["A", "A"])


def test_repr_is_one_readable_line():
    assert repr(make(inputs={"u": T})) == "<Data: 1 experiment(s); observations: A (5), B (5); inputs: u>"


# --- the same design with something else


def test_other_observations_keep_the_design_and_what_was_missing():
    data = Data.join({"x": make(y=with_value(NAN), inputs={"u": T}), "y": make(inputs={"u": 2 * T})})
    other = data.with_observations([np.full((5, 2), 7.0), np.full((5, 2), 8.0)])
    assert [e.name for e in other.experiments] == ["x", "y"]
    np.testing.assert_array_equal(other.experiments[0].y, with_value(NAN) * 0 + 7)
    np.testing.assert_array_equal(other.experiments[1].y, np.full((5, 2), 8.0))
    for before, after in zip(data.experiments, other.experiments, strict=True):
        np.testing.assert_equal((after.t, after.u), (before.t, before.u))
    with pytest.raises(ValueError, match="zip"):
        data.with_observations([np.ones((5, 2))])


def test_rows_that_are_kept_keep_their_times_and_inputs():
    data = make(inputs={"u": 10 * T}).with_rows([np.array([True, False, True, True, True])])
    assert data.t.tolist() == [0, 2, 3, 4]
    np.testing.assert_array_equal(data.y, Y[[0, 2, 3, 4]])
    assert data.experiments[0].u["u"][0].tolist() == T.tolist()


def test_an_experiment_of_which_no_row_is_kept_is_left_out_and_no_row_at_all_is_refused():
    pair = Data.join({"x": make(), "y": make()})
    with pytest.warns(InputWarning, match="left out, as nothing is observed: 'y'"):
        assert [e.name for e in pair.with_rows([np.ones(5, bool), np.zeros(5, bool)]).experiments] == ["x"]
    with pytest.raises(InputError, match="nothing is observed"):
        make().with_rows([T > 9])


def test_further_inputs_come_before_those_that_are_there():
    pair = Data.join({"x": make(inputs={"u": T}), "y": make(inputs={"u": 2 * T})})
    driven = pair.with_inputs({name: {"v": (T, k * T)} for k, name in enumerate("xy")})
    assert driven.inputs == ("v", "u")
    assert pair.inputs == ("u",)
    np.testing.assert_array_equal(driven.experiments[1].u["v"], [T, T])
    np.testing.assert_array_equal(driven.experiments[1].u["u"], [T, 2 * T])
    np.testing.assert_array_equal(driven.experiments[1].y, Y)


# --- what is known of observations, and doses


def test_what_nobody_knows_is_none_and_costs_nothing():
    for e in (
        make().experiments[0],
        make(sd=Y * NAN, limit=Y * 0, doses=[]).experiments[0],
        make(y=with_value(NAN), sd=np.where(np.isnan(with_value(NAN)), 1, NAN)).experiments[0],
    ):
        assert (e.sd, e.limit, e.doses) == (None, None, ())


def test_sd_and_limit_stand_beside_the_observations_read_only():
    data = make(
        y=with_value(NAN), sd={"B": [1, 2, 0, NAN, 5]}, limit=with_value(0) * 0 - 1, doses=[(9, 1), (-3, 2, "A")]
    )
    (e,) = data.experiments
    np.testing.assert_array_equal(e.sd, [[NAN, 1], [NAN, 2], [NAN, NAN], [NAN, NAN], [NAN, 5]])
    np.testing.assert_array_equal(e.limit, [[-1, -1], [-1, -1], [-1, 0], [-1, -1], [-1, -1]])
    assert e.doses == (Dose(-3, 2, "A"), Dose(9, 1))
    assert e.limit.dtype == np.int8
    for array in (e.sd, e.limit):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert_same(pickle.loads(pickle.dumps(data)), data)
    assert make(T, T, ["A"], sd=T + 1, limit=-np.sign(T)).experiments[0].sd.shape == (5, 1)


def test_other_observations_beyond_a_limit_are_not_seen_either():
    data = make(T, T, ["A"], limit=[-1, 0, 1, 1, 0])
    seen = data.with_observations([np.array([[-5.0], [7.0], [9.0], [1.0], [2.0]])])
    np.testing.assert_array_equal(seen.y[:, 0], [0, 7, 2, 1, 2])
    np.testing.assert_array_equal(seen.experiments[0].limit[:, 0], [-1, 0, 1, 0, 0])
    assert data.with_observations([np.array([[5.0]] * 2 + [[0.0]] * 3)]).experiments[0].limit is None


def test_a_limit_that_repeats_is_no_constant_state():
    make(T, [5, 5, 5, 5, 6], ["A"], limit=[-1, -1, -1, -1, 0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"t": T[:3], "y": Y[:3]}, "state 'A' has too few observations: 3; 4 are needed"),
        ({"t": [0, 1, 2, 2, 2], "replicates": "mean"}, "too few observations: 3"),
    ],
)
def test_what_a_smoother_cannot_use_is_data_but_refused_where_it_is_asked_for(arguments, words):
    with pytest.raises(InputError, match=words):
        check_counts(make(**arguments))


def test_little_may_be_seen_in_the_beginning():
    check_counts(make())
    check_counts(make().first(0.1))
    check_counts(make().first(0.1).select(["B"]))
    assert make().first(0.1).t.tolist() == [0, 1]


# --- properties

finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def series(draw, missing=True):
    """Times (N,), none equal up to rounding, and values (N, 2) with at least 4 of each column observed."""
    t = draw(st.lists(finite, min_size=5, max_size=12, unique_by=lambda t: f"{t + 0.0:.9g}"))
    cells = st.one_of(finite, st.just(NAN)) if missing else finite
    y = np.array(draw(st.lists(st.tuples(cells, cells), min_size=len(t), max_size=len(t))))
    y[:4] = np.where(np.isnan(y[:4]), [[1.0, -1.0]], y[:4])
    return np.array(t), y


def quietly(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # any other warning is still an error
        return call(*args, **kwargs)


@fuzz
@given(series(), st.randoms())
def test_the_order_of_the_rows_does_not_matter(drawn, random):
    t, y = drawn
    order = random.sample(range(len(t)), len(t))
    assert_same(quietly(make, t, y, inputs={"u": t}), quietly(make, t[order], y[order], inputs={"u": t[order]}))


@fuzz
@given(series(missing=False), st.randoms())
def test_the_order_of_replicates_does_not_matter(drawn, random):
    t, y = np.tile(drawn[0], 3), np.concatenate([drawn[1], drawn[1] / 3, drawn[1] / 7])
    order = random.sample(range(len(t)), len(t))
    one = quietly(make, t, y, replicates="mean")
    assert_same(one, quietly(make, t[order], y[order], replicates="mean"))
    assert (one.t[1:] > one.t[:-1]).all()


@fuzz
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-1e9, 1e9)), min_size=4, max_size=30))
def test_replicates_that_are_kept_are_all_there_in_the_order_of_the_times(rows):
    t, y = np.array(rows).T
    assume(len(set(t)) > 1)
    data = quietly(make, t, y, ["A"])
    order = np.argsort(t, kind="stable")
    np.testing.assert_array_equal(data.y[:, 0], y[order])
    np.testing.assert_allclose(data.t, t[order], rtol=0, atol=1e-7)
    assert (np.diff(data.t) > 0).all()
    assert distinct_times(data.t).tolist() == sorted(set(t))


@st.composite
def described(draw, states=("A", "B", "C")):
    """Data with all there can be, some of it missing."""
    n = draw(st.integers(2, 7))
    cells = st.tuples(st.sampled_from([NAN, 1.0, 2.0, 3.5]), st.sampled_from([NAN, 0.5, 2.0]), st.integers(-1, 1))
    drawn = np.array(draw(st.lists(cells, min_size=n * len(states), max_size=n * len(states))))
    y, sd, limit = drawn.reshape(n, len(states), 3).transpose(2, 0, 1)
    y[0, 0] = 1.0
    t = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    assume(len(set(t)) > 1)
    doses = draw(st.lists(st.tuples(st.integers(-3, 9), st.integers(1, 5), st.sampled_from(states)), max_size=3))
    return quietly(Data, t, y, states, {"u": np.array(t) ** 2}, sd=sd, limit=limit, doses=doses)


def cells(e: Experiment, states) -> dict:
    """Time and state → what is known of an observation."""
    sd = np.full(e.y.shape, NAN) if e.sd is None else e.sd
    limit = np.zeros(e.y.shape, int) if e.limit is None else e.limit
    return {
        (t, state): (e.y[i, k], str(sd[i, k]), int(limit[i, k]))
        for i, t in enumerate(e.t.tolist())
        for k, state in enumerate(states)
        if not np.isnan(e.y[i, k])
    }


def assert_sound(data: Data) -> None:
    for e in data.experiments:
        assert e.y.shape == (len(e.t), len(data.states))
        assert not np.isnan(e.y).all(axis=1).any()
        assert e.sd is None or ((np.isnan(e.sd) | ~np.isnan(e.y)).all() and not np.isnan(e.sd).all())
        assert e.limit is None or (((e.limit == 0) | ~np.isnan(e.y)).all() and e.limit.any())
        assert list(e.doses) == sorted(e.doses, key=lambda dose: dose.time)


@fuzz
@given(described(), st.permutations(["A", "B", "C"]), st.integers(1, 3), st.randoms())
def test_parts_of_data_carry_what_is_known_of_each_observation(data, order, count, random):
    (e,) = data.experiments
    assert_sound(data)
    whole, chosen = cells(e, data.states), order[:count]
    for part in data.select(chosen).experiments:
        assert cells(part, chosen) == {at: known for at, known in whole.items() if at[1] in chosen}
        assert (part.doses, part.u) == (e.doses, e.u)
    assert_sound(data.select(chosen))
    rows = np.array([random.random() < 0.7 for _ in e.t])
    rows[random.randrange(len(rows))] = True
    kept, first = quietly(data.with_rows, [rows]), data.first(0.5)
    for part, times in ((kept, e.t[rows]), (first, first.t)):
        assert_sound(part)
        assert cells(part.experiments[0], data.states) == {at: v for at, v in whole.items() if at[0] in times}
        assert part.experiments[0].doses == e.doses
    driven = data.with_inputs({"1": {"v": (T, T)}})
    assert_same(driven.with_inputs({"1": {}}), driven)
    assert cells(driven.experiments[0], data.states) == whole
    assert_same(data.with_observations([e.y]), data)


@fuzz
@given(described(), described(states=("C", "A", "B")))
def test_joined_data_carry_what_is_known_of_each_observation(one, other):
    both = quietly(Data.join, {"x": one, "y": other})
    assert_sound(both)
    for joined, alone in zip(both.experiments, (one, other), strict=True):
        assert cells(joined, both.states) == cells(alone.experiments[0], alone.states)
        assert joined.doses == alone.experiments[0].doses


@fuzz
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9), st.integers(-1, 1)), min_size=2, max_size=20))
def test_replicates_that_are_kept_have_their_own_sd_and_limit(rows):
    t, sd, limit = np.array(rows).T
    assume(len(set(t)) > 1)
    (e,) = quietly(Data, t, 10.0 * sd + limit, ["A"], sd=sd, limit=limit).experiments
    np.testing.assert_array_equal(e.y, 10 * e.sd + (0 if e.limit is None else e.limit))
    assert sorted(e.sd[:, 0]) == sorted(sd)


def test_one_experiment_of_several_is_as_it_was():
    t = np.arange(5.0)
    data = Data.join({"one": Data(t, t, ["x"]), "two": Data(t, 2 * t, ["x"])})
    only = data.only("two")
    assert only.experiments == (data.experiments[1],)
    with pytest.raises(InputError, match="there is no experiment 'too'; did you mean 'two'"):
        data.only("too")


def test_windows_hold_all_rows_and_share_where_they_meet():
    rows = {"a": 11, "b": 6}
    data = Data.join({name: Data(np.arange(n), np.arange(n) + 0.5, states=["x"]) for name, n in rows.items()})
    every = np.concatenate([e.y for e in data.experiments])
    for gaps in (1, 2, 3, 5, 50):
        cut, firsts = split_windows(data, gaps)
        assert len(cut.experiments) == len(firsts) == len({e.name for e in cut.experiments})
        for e, first in zip(cut.experiments, firsts, strict=True):
            assert len(e.t) >= 2
            assert (e.y == every[first : first + len(e.t)]).all()
        for name, n in rows.items():
            own = [e.t for e in cut.experiments if e.name.startswith(name)]
            assert set(np.concatenate(own)) == set(range(n))
            assert all(before[-1] == after[0] for before, after in itertools.pairwise(own))
    assert len(split_windows(data, 50)[0].experiments) == 2
