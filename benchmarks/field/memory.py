"""How much memory a piece of work needed, on Linux; nothing where that is not said. Works on old Pythons too."""


def _status(field):
    "A field of /proc/self/status in megabytes."
    with open('/proc/self/status') as f: lines = dict(line.split(':', 1) for line in f)
    return float(lines[field].split()[0])/1024


class Peak:
    "Highest memory since it was made, above what was in use then."
    def __init__(self):
        try:
            with open('/proc/self/clear_refs', 'w') as f: f.write('5') # forget the highest so far
            self.before = _status('VmRSS')
        except (OSError, KeyError): self.before = None

    def megabytes(self):
        if self.before is None: return float('nan')
        return max(0., _status('VmHWM') - self.before)
