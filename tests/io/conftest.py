"""What reads SBML and PEtab is an extra; without it there is nothing to test here."""

import pytest

pytest.importorskip("libsbml")
