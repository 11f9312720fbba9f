"""Local parameters: one value per experiment, told apart by name, and everything said about one said about each."""

from odinfer.problem.local_parameters import LocalParameters


def test_a_local_parameter_has_a_copy_per_experiment_and_each_experiment_sees_its_own():
    split = LocalParameters(("a", "k", "b"), ("k",), ("one", "two"))
    assert split.names == ("a", "k[one]", "k[two]", "b")
    assert [split.names[i] for i in split.of(0)] == ["a", "k[one]", "b"]
    assert [split.names[i] for i in split.of(1)] == ["a", "k[two]", "b"]


def test_of_a_single_experiment_nothing_is_local():
    split = LocalParameters(("a", "k"), ("k",), ("only",))
    assert not split.any
    assert split.names == ("a", "k")


def test_what_is_said_about_a_local_parameter_holds_for_each_copy_unless_one_is_named():
    split = LocalParameters(("a", "k"), ("k",), ("one", "two"))
    assert split.spread({"k": 1.0, "a": 2.0}) == {"k[one]": 1.0, "k[two]": 1.0, "a": 2.0}
    assert split.spread({"k": 1.0, "k[two]": 3.0}) == {"k[one]": 1.0, "k[two]": 3.0}
    assert split.spread({"x": (0.0, None)}) == {"x": (0.0, None)}


def test_what_is_said_of_the_copies_of_one_experiment_is_said_of_its_own_parameters():
    split = LocalParameters(("a", "k"), ("k",), ("one", "two"))
    said = {"a": 2.0, "k[one]": 1.0, "k[two]": 3.0, "x": (0.0, None)}
    assert split.own(1, said) == {"a": 2.0, "k": 3.0, "x": (0.0, None)}
    assert split.own(0, split.spread({"k": 5.0})) == {"k": 5.0}
