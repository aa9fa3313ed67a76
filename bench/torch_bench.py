"""PyTorch beside compgrad: fractions of torch's own read-sum of the same buffer, one thread, best of several."""
import sys
import time

try:
    import torch
except ImportError:
    print("torch: skipped, PyTorch is not installed for this python")
    sys.exit(0)


def best(f, reps=5):
    f()
    times = []
    for _ in range(reps):
        t = time.perf_counter()
        f()
        times.append(time.perf_counter() - t)
    return min(times)


torch.set_num_threads(1)
torch.manual_seed(1)
n = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 24
x = torch.distributions.Laplace(0.0, 1.0).sample((n,))
half, brain, y = x.half(), x.bfloat16(), torch.empty_like(x)
read, write = best(lambda: x.sum()), best(lambda: y.fill_(1.0))
print(f"\ntorch {torch.__version__}, n = {n}: sum {4e-9 * n / read:.1f} GB/s, fill {4e-9 * n / write:.1f} GB/s")
for name, limit, f in [
    ("half", read, lambda: x.half()),
    ("half back", write, lambda: y.copy_(half)),
    ("bfloat16", read, lambda: x.bfloat16()),
    ("bfloat16 back", write, lambda: y.copy_(brain)),
    ("sign, int8", read, lambda: x.sign().to(torch.int8)),
    ("topk 0.1 %", read, lambda: x.abs().topk(n // 1000, sorted=False)),
    ("topk 1 %", read, lambda: x.abs().topk(n // 100, sorted=False)),
]:
    t = best(f)
    print(f"torch {name:<18} {limit / t:8.3f} of the limit {4e-9 * n / t:8.1f} GB/s")
