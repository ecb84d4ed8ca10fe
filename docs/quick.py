"jsonschema takes a second and a half to build its grammar of addresses, which no notebook has and no schema of ours: import this before it."
import sys

sys.modules.setdefault('rfc3987_syntax', None)
