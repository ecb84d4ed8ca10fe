"""The methods of this package: settings of gradual construction, and the baselines."""
import time
from dataclasses import replace

import numpy as np

from gradual_cf.baselines.nearest import CEM
from gradual_cf.baselines.lore import LORE
from gradual_cf.baselines.nearest import GrowingSpheres
from gradual_cf.baselines.nearest import Wachter
from gradual_cf.gradual import PAPER, PLAUSIBLE, ROBUST, SPARSE, GradualCF
from gradual_cf.models.fitted import predictor

from .memory import Peak

ALONE = 2 # Rows that are explained once more, one at a time
SETTINGS = {'ours': SPARSE, 'ours, quantile .5': replace(SPARSE, quantile=.5), 'ours, lead .35': replace(SPARSE, logit_margin=.35),
            'ours, spread 3': replace(SPARSE, max_shared=3), 'ours, robust': ROBUST, 'ours, believable': PLAUSIBLE, "ours, the paper's": PAPER}
BASELINES = {'our Wachter': Wachter, 'our CEM': CEM, 'our Growing Spheres': GrowingSpheres, 'our LORE': LORE}
METHODS = (*SETTINGS, *BASELINES, 'ours, as a function')
NEED_GRADIENT = ("ours, the paper's", 'our Wachter', 'our CEM')


def applies(name, model):
    "Whether a method can be asked about a model at all."
    network = model in ('network', 'small')
    if name == 'ours, as a function': return model in ('xgboost', 'lightgbm', 'forest')
    return network or name not in (*NEED_GRADIENT, 'ours, spread 3') # the last takes half a minute on a mere function


def explainer(name, case):
    "The explainer, not yet fitted."
    if name in BASELINES: return BASELINES[name](case.model, case.domain)
    model = case.model
    if name == 'ours, as a function': model = predictor(model.predict_proba, case.domain, names=list(case.table.X))
    return GradualCF(model, case.domain, SETTINGS.get(name, SPARSE))


def run(name, case, budget, limit):
    "Answers as codes `(n, g)`, NaN where none was found in time; and what it took."
    peak, start = Peak(), time.process_time()
    cf = explainer(name, case).fit(case.table.X)
    if name in SETTINGS: cf.explain(case.rows.iloc[:1], case.target[:1]) # what is learnt when a class is first asked for
    fit, start = time.process_time() - start, time.process_time()
    answers = cf.explain(case.rows, case.target)
    each = (time.process_time() - start)/len(case.rows)
    codes = case.codes(answers.raw)
    codes[~answers.valid | (each > budget)] = np.nan
    seconds = np.full(len(codes), in_bulk(cf, case, each, limit))
    return codes, seconds, dict(fit=fit, single=single(cf, case) if name in SETTINGS else np.nan, memory=peak.megabytes(), words='')


def in_bulk(cf, case, each, limit):
    "Seconds a row of a call with as many rows as the limit has time for."
    n = min(len(case.plenty), int(limit/each))
    if n < 2*len(case.rows): return each
    start = time.process_time()
    cf.explain(case.plenty.iloc[:n], case.aims[:n])
    return (time.process_time() - start)/n


def single(cf, case):
    "Median seconds of rows that are asked about one at a time."
    took = []
    for i in range(min(ALONE, len(case.rows))):
        start = time.process_time()
        cf.explain(case.rows.iloc[[i]], case.target[[i]])
        took.append(time.process_time() - start)
    return float(np.median(took))
