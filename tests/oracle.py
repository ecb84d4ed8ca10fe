"""Algorithm 1 line by line: one row, plain loops, torch.optim and autograd. `construct` must agree with it.

It shares no code with the package: what is written here twice is written twice on purpose.
"""
import math

import torch


def prob(model, xp, t):
    "Probability of class `t` at one input."
    with torch.no_grad(): return model(xp[None])[0].softmax(0)[t].item()


def lacking(model, xp, t, level, mu, gap):
    "0 if the row has arrived, else how much is missing."
    with torch.no_grad(): z = model(xp[None])[0]
    p = z.softmax(0)[t].item()
    miss = 0. if p >= level else max(math.log(level) - z.log_softmax(0)[t].item(), 1e-6)
    if gap is not None: miss += max((z - mu).abs().mean().item() - gap, 0.)
    return miss


def merit(model, x, xp, t, level, mu, gap):
    "Higher is better: arrived and near, else lacking little, in steps of 1e-5; within a step the nearer."
    miss,near = lacking(model, xp, t, level, mu, gap), 1/(1 + (xp - x).norm().item())
    return -1e-5*(round(miss/1e-5) + (1 - near)/2) if miss > 0 else near


def loss_of(model, x, xp, mu, lam, eta, match):
    "Eq. 7, or Eq. 8 with `eta`."
    d = model(xp[None])[0] - mu
    fit = dict(mean=d.abs().mean(), norm=d.norm(), sum=d.sum().abs())[match]
    loss = fit + lam*torch.linalg.vector_norm(xp - x)
    if not eta: return loss
    for a in range(xp.shape[-2]):
        for b in range(xp.shape[-1]):
            if b + 1 < xp.shape[-1]: loss = loss + eta*((xp[..., a, b + 1] - xp[..., a, b])**2).sum()
            if a + 1 < xp.shape[-2]: loss = loss + eta*((xp[..., a + 1, b] - xp[..., a, b])**2).sum()
    return loss


def composition(model, x, c, mask, t, mu, gap, s):
    "Sigma Adam steps on the masked entries; the last iterate, or the one of most merit."
    c = c.clone().requires_grad_()
    opt = torch.optim.Adam([c], lr=s['lr'])
    best,most = None,-math.inf
    for i in range(s['sigma'] + 1):
        xp = torch.where(mask, c, x)
        if s['keep'] == 'nearest' and (m := merit(model, x, xp.detach(), t, s['level'], mu, gap)) > most: best,most = xp.detach().clone(), m
        if i == s['sigma']: break
        c.grad, = torch.autograd.grad(loss_of(model, x, xp, mu, s['lam'], s['eta'], s['match']), c)
        opt.step()
        if s['project']:
            with torch.no_grad(): c.copy_(torch.where(mask, s['project'](c[None], x[None])[0], c))
    return best if s['keep'] == 'nearest' else torch.where(mask, c, x).detach()


def candidates(x, xp, group, groups, s):
    "Every proposed value of one group, projected, that changes the row."
    for v in s['propose'](x[None], group)[0]:
        c = xp.clone()
        c[groups == group] = v
        if s['project']: c[groups == group] = s['project'](c[None], x[None])[0][groups == group]
        if not torch.equal(c, xp): yield c


def probe(model, x, xp, t, free, groups, mu, gap, s):
    "The candidate of most merit over all free groups, the first one among equals; zoomed where a single number arrived."
    best,most,found = None,-math.inf,None
    for g in free:
        top,high = None,-math.inf
        for c in candidates(x, xp, g, groups, s):
            if (m := merit(model, x, c, t, s['level'], mu, gap)) > high: top,high = c,m
        if top is None: continue
        if high > 0 and int((groups == g).sum()) == 1:
            a,b = xp[groups == g], top[groups == g]
            for share in range(1, 10):
                c = xp.clone()
                c[groups == g] = torch.lerp(a, b, torch.linspace(0, 1, 11, dtype=x.dtype)[share])
                if s['project']: c[groups == g] = s['project'](c[None], x[None])[0][groups == g]
                if not torch.equal(c, xp) and (m := merit(model, x, c, t, s['level'], mu, gap)) > high: top,high = c,m
        if high > most: best,most,found = top,high,g
    return found,best


def gradual(model, x, t, mu, groups, frozen, c, *, masking='gradient', keep='last', sigma=30, lr=.1, lam=.3, eta=0., match='mean', tau=.5, tau_slack=0.,
            gap=None, project=None, propose=None, max_changes=None, seen=None):
    "Algorithm 1 for one row; returns the perturbed input and the groups that were switched on, in order; `seen` collects all states."
    s = dict(keep=keep, sigma=sigma, lr=lr, lam=lam, eta=eta, match=match, project=project, propose=propose, level=tau + tau_slack*(1 - tau))
    n_groups = int(groups.max()) + 1
    xg = x.clone().requires_grad_()
    grad, = torch.autograd.grad(model(xg[None])[0, t], xg)
    score = [grad[groups == g].abs().mean().item() for g in range(n_groups)]
    order = sorted((g for g in range(n_groups) if not frozen[g]), key=lambda g: -score[g])
    xp,c,on,mask = x.clone(), c.clone(), [], torch.zeros_like(x, dtype=torch.bool)
    if prob(model, x, t) >= tau: return xp,on
    while len(on) < (max_changes or n_groups):
        free = [g for g in range(n_groups) if not frozen[g] and g not in on]
        if masking == 'gradient':
            left = [g for g in order if g not in on]
            if not left: break
            g,start = left[0],c
        else:
            g,start = probe(model, x, xp, t, free, groups, mu, gap, s)
            if g is None: break
            start = torch.where(groups == g, start, c)
        on.append(g)
        mask = mask | (groups == g)
        rests = masking == 'probe' and keep == 'nearest' and lacking(model, torch.where(mask, start, x), t, s['level'], mu, gap) == 0
        xp = torch.where(mask, start, x) if rests else composition(model, x, start, mask, t, mu, gap, s)
        c = torch.where(mask, xp, start)
        if seen is not None: seen.append(xp)
        if lacking(model, xp, t, tau, mu, gap) == 0: break
    return xp,on


def best_of(model, x, states, t, keep, tau, mu, gap):
    "Of all states of a row: the last that has arrived; else what reached `tau`; else what lacks least, or the last."
    best = x
    for s in states:
        there,was = prob(model, s, t) >= tau, prob(model, best, t) >= tau
        less = lacking(model, s, t, tau, mu, gap) <= lacking(model, best, t, tau, mu, gap)
        if there and not was or there == was and (less or keep == 'last' and not there): best = s
    return best
