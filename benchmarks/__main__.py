"""``python -m benchmarks [NAME …]``: run the benchmarks one after the other, each printing one table."""

from __future__ import annotations

import sys

from benchmarks import cache, character_models, taps

BENCHMARKS = {"character_models": character_models, "cache": cache, "taps": taps}

if __name__ == "__main__":
    names = sys.argv[1:] or list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in names:
        print(f"## {name}\n\n{(BENCHMARKS[name].__doc__ or '').splitlines()[0]}\n")
        BENCHMARKS[name].main()
        print()
