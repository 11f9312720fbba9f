"""Draw the thumbnails of the gallery: python docs/_site/thumbnails.py, after a change of examples or figures."""

import tempfile
from pathlib import Path

import odinfer as od
from odinfer.apps.command import example
from odinfer.result.figures.states import state_panels, states_picture
from odinfer.style.drawing import svg
from odinfer.style.picture import panel_figure

FOLDER = Path(__file__).parent / "static" / "gallery"


def main() -> None:
    """Fit every example, and write the panel of its first observed state as SVG."""
    FOLDER.mkdir(exist_ok=True)
    for name in example.names():
        with tempfile.TemporaryDirectory() as folder:
            model, data, _ = example.write(name, Path(folder))
            system = od.Model.from_file(model)
            covariates = ["wt"] if name == "population" else []
            fit = od.fit(system, od.read_csv(data, covariates=covariates) if covariates else data)
        if isinstance(fit, od.PopulationFit):
            (FOLDER / f"{name}.svg").write_bytes(svg(fit.plot("fits")))
            continue
        shown = next(i for i, panel in enumerate(state_panels(fit)) if panel.traces)
        figure = panel_figure(states_picture(fit).plots[shown], height=2.4)
        (FOLDER / f"{name}.svg").write_bytes(svg(figure))


if __name__ == "__main__":
    main()
