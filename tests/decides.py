"""Classifiers of scikit-learn, small and quickly fitted, with the wrappers that decide for them; and rows to decide about."""
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

SLOW = {'GaussianProcessClassifier', 'MLPClassifier', 'GradientBoostingClassifier', 'HistGradientBoostingClassifier', 'LabelPropagation', 'LabelSpreading', 'LogisticRegressionCV'}
COUNTS = ('ComplementNB', 'MultinomialNB', 'CategoricalNB')  # These want whole numbers from 0 on
FEWER = dict(AdaBoostClassifier=dict(n_estimators=8), BaggingClassifier=dict(n_estimators=4), ExtraTreesClassifier=dict(n_estimators=8), RandomForestClassifier=dict(n_estimators=8),
             MLPClassifier=dict(hidden_layer_sizes=(4,), max_iter=300), GradientBoostingClassifier=dict(n_estimators=8), HistGradientBoostingClassifier=dict(max_iter=8), NuSVC=dict(nu=.1),
             RadiusNeighborsClassifier=dict(radius=4., outlier_label='most_frequent'))


def table(k, seed=0, n=240):
    "Mixed rows, and k classes of unequal size."
    r = np.random.default_rng(seed)
    X = pd.DataFrame(r.normal(size=(n, 3)).round(1), columns=list('abc')).assign(d=r.integers(0, 4, n))
    s = X.a + X.b*X.c + .5*X.d + r.normal(0, .8, n)
    return X, pd.qcut(s, np.r_[0, np.sort(r.uniform(.15, .85, k - 1)), 1], labels=False).to_numpy()


def every():
    "Every classifier of scikit-learn that is made without another one."
    from sklearn.utils import all_estimators  # imports all of it
    out = {}
    for name, cls in all_estimators('classifier'):
        try: out[name] = cls(**FEWER.get(name, {}))
        except TypeError: continue  # needs another estimator
        if 'random_state' in out[name].get_params(): out[name].set_params(random_state=0)
    return out


def kinds():
    "Classifiers that decide in ways of their own, and what may stand around others."
    line, tree = LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0)
    machine = SVC(probability=True, class_weight='balanced', random_state=0)
    three = [('l', line), ('t', tree), ('n', GaussianNB())]
    return {
        'SVC with probability': machine, 'SVC ovo': SVC(decision_function_shape='ovo'), 'SVC ties': SVC(break_ties=True), 'NuSVC ovo': NuSVC(nu=.1, decision_function_shape='ovo'),
        'cut .8': FixedThresholdClassifier(line, threshold=.8), 'cut .2 of the first': FixedThresholdClassifier(tree, threshold=.2, pos_label=0),
        'cut of decisions': FixedThresholdClassifier(line, threshold=1., response_method='decision_function'), 'tuned': TunedThresholdClassifierCV(line, scoring='f1', cv=3),
        'tuned forest': TunedThresholdClassifierCV(RandomForestClassifier(8, random_state=0), scoring='balanced_accuracy', cv=3),
        'cut around a pipeline': FixedThresholdClassifier(make_pipeline(StandardScaler(), tree), threshold=.7),
        'one against the rest': OneVsRestClassifier(machine), 'one against one': OneVsOneClassifier(tree), 'codes': OutputCodeClassifier(line, random_state=0),
        'calibrated': CalibratedClassifierCV(LinearSVC(), cv=3), 'hard votes': VotingClassifier(three), 'soft votes': VotingClassifier(three, voting='soft'),
        'stack': StackingClassifier([('l', line)], machine, cv=3), 'bag': BaggingClassifier(SVC(), 3, random_state=0), 'self-trained': SelfTrainingClassifier(line),
        'neighbours': KNeighborsClassifier(4), 'centroids': NearestCentroid(), 'tree': tree}


def wrapped(name, model, how):
    "The same model alone, behind a scaler, or found by a search."
    if how == 'pipeline': return make_pipeline(StandardScaler(), clone(model)) if name not in COUNTS else make_pipeline(clone(model))
    return GridSearchCV(clone(model), {}, cv=2) if how == 'search' else clone(model)
