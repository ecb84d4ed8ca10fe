"""What boxes know of a question, with all numbers: for benchmarks and tests that compare proofs."""
from types import SimpleNamespace

import numpy as np

from gradual_cf.core import Effort
from gradual_cf.search import proven


def cheapest(cf, data, target=None, optimal='columns', seconds=None, gap=0., start=True, robust=None, **constraints):
    "Answers and what is proven of them, from the explainer's own ones (`start`) or from nothing; `seconds` is the most of one row."
    cf = proven._of_decision(cf)
    proven._check_question(cf, optimal, seconds, gap)
    q = cf.ask(data, target, **constraints)
    task = proven._Task(cf, q, Effort(seconds=seconds or np.inf, gap=gap), proven._readings_of(cf, optimal), optimal, robust)
    if robust is not None: proven._check_robust(cf, task.readings, robust)
    known, begun = proven._search_and_prove(task) if start else (proven._by_boxes(task), np.ones(len(q), bool))
    scope = proven._scope(cf, robust, proven._whether_compared(cf, q.target))
    answers = proven._carrying(cf.measure(q, known.xp), known, begun, optimal, scope)
    return SimpleNamespace(**known._asdict() | dict(answers=answers, optimal=optimal, proof=answers.proof))
