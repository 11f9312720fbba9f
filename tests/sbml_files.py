"""A small SBML model and PEtab problem of our own making, written to a folder; parts of them can be replaced."""

from pathlib import Path

MODEL = """<?xml version="1.0" encoding="UTF-8"?>
<sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1">
<model id="drug">
<listOfFunctionDefinitions>FUNCTIONS</listOfFunctionDefinitions>
<listOfCompartments>
<compartment id="blood" size="5" spatialDimensions="3" constant="BLOOD_IS_CONSTANT"/>
</listOfCompartments>
<listOfSpecies>
<species id="A" compartment="blood" initialConcentration="2" hasOnlySubstanceUnits="false" boundaryCondition="false"
 constant="false"/>
<species id="B" compartment="blood" initialAmount="5" hasOnlySubstanceUnits="true" boundaryCondition="false"
 constant="false"/>
</listOfSpecies>
<listOfParameters>
<parameter id="k" value="0.3" constant="true"/><parameter id="input" value="2" constant="true"/>MORE_PARAMETERS
</listOfParameters>
<listOfInitialAssignments>STARTS</listOfInitialAssignments>
<listOfRules>RULES</listOfRules>
<listOfReactions>
<reaction id="turn" reversible="false" fast="false">
<listOfReactants><speciesReference species="A" stoichiometry="1" constant="true"/></listOfReactants>
<listOfProducts><speciesReference species="B" stoichiometry="2" constant="true"/></listOfProducts>
<kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
<apply><times/><ci>blood</ci><ci>k</ci><ci>A</ci></apply></math></kineticLaw>
</reaction>
</listOfReactions>
<listOfEvents>EVENTS</listOfEvents>
</model></sbml>
"""
DEFAULTS = {
    "FUNCTIONS": "",
    "BLOOD_IS_CONSTANT": "true",
    "MORE_PARAMETERS": "",
    "STARTS": "",
    "RULES": "",
    "EVENTS": "",
}
LISTS = ("FunctionDefinitions", "InitialAssignments", "Rules", "Events")  # which may not be empty


def math(content: str) -> str:
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{content}</math>'


def event(trigger: str, state: str = "A", value: str = "<cn>1</cn>") -> str:
    """An event of level 3 that gives a state a new value."""
    return (
        f'<event id="e" useValuesFromTriggerTime="true"><trigger initialValue="true" persistent="true">{math(trigger)}'
        f'</trigger><listOfEventAssignments><eventAssignment variable="{state}">{math(value)}</eventAssignment>'
        "</listOfEventAssignments></event>"
    )


TIME = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/time">t</csymbol>'
AT_3 = f"<apply><geq/>{TIME}<cn>3</cn></apply>"
LOW = "<apply><lt/><ci>A</ci><cn>1</cn></apply>"


def sbml(folder: Path, **parts: str) -> Path:
    text = MODEL
    for word, default in DEFAULTS.items():
        text = text.replace(word, parts.get(word, default))
    for name in LISTS:
        text = text.replace(f"<listOf{name}></listOf{name}>", "")
    path = folder / "drug.xml"
    path.write_text(text)
    return path


TABLES = {
    "parameters": "parameterId\tparameterScale\tlowerBound\tupperBound\tnominalValue\testimate\n"
    "k\tlog10\t1e-3\t10\t0.5\t1\ninput\tlin\t0\t10\t3\t0\nsd_B\tlin\t0.01\t10\t0.2\t1\n",
    "observables": "observableId\tobservableFormula\tnoiseFormula\nobs_A\tA\tnoiseParameter1_obs_A\n"
    "obs_B\tB/observableParameter1_obs_B\tsd_B\n",
    "conditions": "conditionId\tA\nlow\t2\nhigh\t4\n",
    "measurements": "observableId\tsimulationConditionId\ttime\tmeasurement\tobservableParameters\tnoiseParameters\n"
    "obs_A\tlow\t1\t1.2\t\t0.1\nobs_A\tlow\t2\t0.8\t\t0.2\nobs_B\thigh\t2\t4.5\tinput\t\nobs_B\thigh\t3\t10\t2\t\n",
}


def petab(folder: Path, files: dict[str, str] | None = None, **parts: str) -> Path:
    """A problem of two conditions; tables and parts of the model can be replaced."""
    sbml(folder, **parts)
    for name, text in {**TABLES, **(files or {})}.items():
        (folder / f"{name}.tsv").write_text(text)
    path = folder / "drug.yaml"
    path.write_text(
        "format_version: 1\nparameter_file: parameters.tsv\nproblems:\n- condition_files: [conditions.tsv]\n"
        "  measurement_files: [measurements.tsv]\n  observable_files: [observables.tsv]\n  sbml_files: [drug.xml]\n"
    )
    return path
