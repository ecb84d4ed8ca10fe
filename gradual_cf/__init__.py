"""What is the least change that leads to another decision? Counterfactuals for any model, by gradual construction.

The names below are those most people need: `import gradual_cf as gc`, then `gc.GradualCF`, `gc.tabular`, `gc.explorer`. Each
is loaded when it is first asked for, so that the import itself is quick. In a notebook, `from gradual_cf.all import *`
gives more.
"""
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .answers import Counterfactuals as Counterfactuals
    from .use.audit import audit as audit
    from .scale.batch import as_batches as as_batches, explain_dataset as explain_dataset
    from .use.checks import checks as checks
    from .use.reasons import reasons as reasons
    from .use.explorer import explorer as explorer
    from .gradual import IMAGE as IMAGE, PAPER as PAPER, PLAUSIBLE as PLAUSIBLE
    from .gradual import ROBUST as ROBUST, SPARSE as SPARSE, TEXT as TEXT
    from .gradual import GradualCF as GradualCF, Settings as Settings
    from .data.images import images as images
    from .search.shorten import improve as improve
    from .use.letter import letter as letter
    from .measures.metrics import confirm as confirm, evaluate as evaluate
    from .models.fitted import load_fitted as load_fitted, predictor as predictor
    from .search.proven import prove as prove
    from .use.drawing import stepper as stepper
    from .data.series import series as series
    from .data.tables import tabular as tabular
    from .data.datasets import load_task as load_task
    from .data.texts import sentences as sentences

__version__ = "0.1.0"

_HOMES = {  # Module -> names
    'gradual': 'GradualCF Settings SPARSE ROBUST PLAUSIBLE PAPER IMAGE TEXT', 'answers': 'Counterfactuals',
    'data.tables': 'tabular', 'data.images': 'images', 'data.texts': 'sentences',
    'data.series': 'series', 'data.datasets': 'load_task',
    'models.fitted': 'predictor load_fitted', 'measures.metrics': 'evaluate confirm',
    'search.shorten': 'improve', 'search.proven': 'prove',
    'scale.batch': 'as_batches explain_dataset', 'use.drawing': 'stepper', 'use.explorer': 'explorer', 'use.letter': 'letter',
    'use.audit': 'audit', 'use.checks': 'checks', 'use.reasons': 'reasons'}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = [*_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


_METHODS = {  # What a method does that only a later chapter can do: its function
    '_letter': 'use.letter._letter_of', '_reasons': 'use.reasons._reasons_of', '_explorer': 'use.explorer._explorer_of',
    '_prove': 'search.proven._prove_of', '_confirm': 'measures.metrics._confirm_of', '_plan': 'use.alternatives.plan_of',
    '_effects': 'use.alternatives.effects_of', '_several': 'use.alternatives.several', '_card': 'use.enough.plot_card',
    '_enough': 'use.enough.enough_words', '_save': 'scale.keep.save_explainer', '_load': 'scale.keep.load_explainer'}


def __getattr__(name):
    "Load a name from its module."
    if name in _METHODS:
        home, _, work = _METHODS[name].rpartition('.')
        return getattr(import_module(f'{__name__}.{home}'), work)
    if name.startswith('_'): raise AttributeError(name)
    if name in _HOME: value = getattr(import_module(f'{__name__}.{_HOME[name]}'), name)
    elif name in (more := import_module(f'{__name__}.all')).__all__: value = getattr(more, name)
    else: return import_module(f'{__name__}.core').missing_attribute(sys.modules[__name__], name)
    globals()[name] = value
    return value


def __dir__(): return sorted([*_HOME, '__version__'])
