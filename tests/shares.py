"""A measured share beside a published one: how far below may it lie by chance?"""
from scipy.stats import beta

SURE = .999  # one-sided


def least(published, of):
    "The lower bound, sure to 99.9 %, of a share that was published for a number of rows: exact, by Clopper and Pearson."
    hits = round(published*of)
    return float(beta.ppf(1 - SURE, hits, of - hits + 1)) if hits else 0.


def at_least(share, of, published):
    "Assert that a share of `of` rows is not below what a published share of as many rows lets expect."
    bound = least(published, of)
    assert share >= bound, f'{share:.3f} of {of} rows is below {bound:.3f}, the lower 99.9 % bound of the published {published:.3f} for so many rows'
