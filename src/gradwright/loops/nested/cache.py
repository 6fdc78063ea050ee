"""The key-value caches of Hugging Face Transformers, met without importing it."""

import sys

_MODULE = "transformers.cache_utils"
_KINDS = ("Cache", "CacheLayerMixin", "LinearAttentionCacheLayerMixin")


def is_cache_part(value: object) -> bool:
    """Whether `value` is a cache, or one layer of it: objects that are their attributes."""
    return isinstance(value, cache_kinds())


def cache_kinds() -> tuple[type, ...]:
    """The types of caches and of their layers."""
    module = sys.modules.get(_MODULE)  # where it is not loaded, nobody can have made a cache
    kinds = [getattr(module, kind, None) for kind in _KINDS]
    return tuple(kind for kind in kinds if isinstance(kind, type))
