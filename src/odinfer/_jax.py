"""JAX with 64-bit floats. Imported inside functions, because importing JAX takes most of a second."""

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

__all__ = ["jax", "jnp"]
