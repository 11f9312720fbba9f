"""Import JAX with 64-bit floats and a persistent compilation cache. Imported inside functions, since it takes most of a
second.
"""

import contextlib
import os
from pathlib import Path

from odinfer.errors import InputError

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    raise InputError(
        "models, priors and systems that are Python functions, and sampling, need JAX: pip install 'odinfer[sample]' "
        "(models from text are fitted without it)"
    ) from None

jax.config.update("jax_enable_x64", True)
with contextlib.suppress(OSError):  # a cache is welcome, not needed
    _cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odinfer" / "jax"
    _cache.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(_cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

__all__ = ["jax", "jnp"]
