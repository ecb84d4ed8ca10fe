"""CPU time of calls: what others do on the machine does not count."""
import time


def timed(f):
    "What a call gives, and its CPU seconds."
    start = time.process_time()
    out = f()
    return out, time.process_time() - start


def cpu(f):
    "CPU seconds of one call."
    return timed(f)[1]
