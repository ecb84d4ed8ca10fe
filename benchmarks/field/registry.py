"""Which methods there are, and where each of them runs."""
from . import exchange, ours

# title -> (environment, its method); the script is peers/ask_ENVIRONMENT.py
PEERS = {
    'NICE (none)': ('nice', 'none'), 'NICE (sparsity)': ('nice', 'sparsity'),
    'NICE (proximity)': ('nice', 'proximity'), 'NICE (plausibility)': ('nice', 'plausibility'),
    'DiCE random': ('dice', 'random'), 'DiCE genetic': ('dice', 'genetic'),
    'DiCE kd-tree': ('dice', 'kdtree'), 'DiCE gradient': ('dice', 'gradient'),
    'cfnow greedy': ('cfnow', 'greedy'), 'cfnow random': ('cfnow', 'random'),
    'cfnow random-sequential': ('cfnow', 'random-sequential'),
    'alibi prototypes': ('alibi', 'prototypes'), 'alibi CEM': ('alibi', 'cem'),
    'CADEX': ('cel', 'CADEX'), 'PPCEF': ('cel', 'PPCEF'), 'GLOBE-CE': ('cel', 'GLOBE-CE'), 'WACH': ('cel', 'WACH')}
METHODS = (*ours.METHODS, *PEERS)
NETWORKS_ONLY = {'DiCE gradient', 'alibi CEM', 'CADEX', 'PPCEF', *ours.NEED_GRADIENT}


def applies(method, model):
    "Whether a method can be asked about a model at all."
    if method in ours.METHODS: return ours.applies(method, model)
    return model in ('network', 'small') or method not in NETWORKS_ONLY


def run(method, case, folder, budget, limit):
    "Answers as codes, seconds a row, and what it took."
    if method in PEERS: return exchange.run(*PEERS[method], case, folder, budget, limit)
    return ours.run(method, case, budget, limit)
