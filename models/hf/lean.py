"""Import transformers without scikit-learn and Triton, to save 0.17 GB and a second in each process.

Only assisted generation and torch's compiler need those packages. Import this module before transformers' models.
"""

import sys

import torch

USED_BY_OTHERS_ONLY = ("sklearn",) if torch.version.cuda else ("sklearn", "triton")

_absent = [package for package in USED_BY_OTHERS_ONLY if package not in sys.modules]
sys.modules.update(dict.fromkeys(_absent))  # pyrefly: ignore[no-matching-overload]  # None makes importing them fail, for now
try:
    import transformers.models.auto.modeling_auto  # noqa: F401
finally:
    for _package in _absent:
        del sys.modules[_package]

from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: E402

__all__ = ["MODEL_FOR_CAUSAL_LM_MAPPING", "AutoConfig", "AutoModelForCausalLM", "AutoTokenizer"]
