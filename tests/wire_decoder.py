"""A second decoder of compgrad's packets, in plain Python, written from docs/wire.md.

    python3 tests/wire_decoder.py tests/golden     decodes the golden packets that the page covers, compares their floats
                                                   with those that are listed there, and damages some of them
"""
import os
import random
import struct
import sys

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
HEADER = 168


class Refused(Exception):
    """Not a packet, or a damaged one."""


class NotCovered(Exception):
    """A stage or code that the page leaves to the comments of the sources."""


def check(good, why):
    if not good:
        raise Refused(why)


def f32(x):
    """Rounds a double to a float; what is too large becomes the largest float."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return struct.unpack("<f", struct.pack("<I", 0x7F7FFFFF | (0x80000000 if x < 0 else 0)))[0]


def bits_of(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def float_at(p, at):
    return struct.unpack_from("<f", p, at)[0]


def finite(x):
    return x - x == 0


def words(bits):
    """Bytes of so many bits in whole u32 words."""
    return (bits + 31) // 32 * 4


def bit_string(p):
    return int.from_bytes(p, "little")


def bits_at(p, at, many):
    """Bits [at, at + many) of a bit string, the lowest first."""
    first = at // 8
    return int.from_bytes(p[first:(at + many + 7) // 8], "little") >> at % 8 & (1 << many) - 1


def set_bits(p):
    return [8 * i + b for i, byte in enumerate(p) if byte for b in range(8) if byte >> b & 1]


def zeros_from(p, at):
    """Are all bits from `at` on zero?"""
    return at >= 8 * len(p) or (p[at // 8] >> at % 8 == 0 and not any(p[at // 8 + 1:]))


# ---- random numbers ----

def mix64(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def shared_key(tag):
    z = mix64((tag["seed"] + GOLDEN) & MASK)
    z = mix64(z ^ (tag["step"] + 2 * GOLDEN & MASK))
    return mix64(z ^ (tag["tensor"] + 3 * GOLDEN & MASK))


def hash32(key, counter):
    h = (counter ^ key) & 0xFFFFFFFF
    h = (h ^ h >> 16) * 0x7FEB352D & 0xFFFFFFFF
    h = ((h ^ h >> 15) + (key >> 32)) * 0x846CA68B & 0xFFFFFFFF
    return h ^ h >> 16


def stage_key(stage, tag):
    if not stage["flags"] & 2:
        return shared_key(tag)
    return mix64(shared_key(tag) ^ (tag["rank"] + 4 * GOLDEN & MASK)) ^ 0xBB67AE8584CAA73B


def perm_k_index(key, group, workers, rank):
    block = mix64(key + ((group >> 16) + 1) * GOLDEN & MASK)
    return ((hash32(block, group & 0xFFFF) * workers >> 32) + rank) % workers


def perm_k_drawn(stage, n, tag):
    workers = stage["size"]
    check(workers and tag["rank"] < workers, "a rank that is none of the workers")
    last = n % workers and perm_k_index(stage_key(stage, tag), n // workers, workers, tag["rank"]) < n % workers
    return n // workers + (1 if last else 0)


def sample(stage, n, drawn, tag):
    """The coordinates of the sample."""
    key = stage_key(stage, tag)
    if stage["id"] == 2:
        workers = stage["size"]
        check(drawn == perm_k_drawn(stage, n, tag), "drawn")
        return [j * workers + perm_k_index(key, j, workers, tag["rank"]) for j in range(drawn)]
    out = []
    for j in range(drawn):
        start, end = j * n // drawn, (j + 1) * n // drawn
        block = mix64(key + ((j >> 16) + 1) * GOLDEN & MASK)
        out.append(start + (hash32(block, j & 0xFFFF) * (end - start) >> 32))
    return out


# ---- operators ----

SAMPLE, TRANSFORM, SELECT, QUANTIZE, CODE, CLIP = range(6)
KEEPS_LARGEST = {1, 3, 4, 5}
BLOCKS, GIVEN = 12, 13


def stages_at(p, at):
    out = []
    for slot in range(6):
        stage = dict(zip(("id", "flags", "arg", "size", "value"), struct.unpack_from("<BBHIf", p, at + 12 * slot)))
        check(finite(stage["value"]), "a parameter is not finite")
        out.append(stage)
    return out


DENSE = [dict(id=0, flags=0, arg=0, size=0, value=0.0) for _ in range(6)]


TINY = 0x17800000
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
NF4 = [f32(v) for v in (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)]


def natural(codes, i, k):
    first = i // 2048 * 2048  # exponents of 2048 values, then their signs
    at, many = first // 2048 * 2304, min(2048, k - first)
    e = min(codes[at + i - first], 254)
    sign = codes[at + many + (i - first) // 8] >> (i - first) % 8 & 1
    return struct.unpack("<f", struct.pack("<I", e << 23 | (sign << 31 if e else 0)))[0]


def small_float(c, scale, is_e5m2, divides):
    """E4M3 or E5M2 times the scale, which is first divided by the largest number of the format, unless it is of MX."""
    most = 0x7B if is_e5m2 else 0x7E
    half = (c & 128) << 8 | min(c & 127, most) << (8 if is_e5m2 else 7)
    v = struct.unpack("<e", struct.pack("<H", half))[0] * (1 if is_e5m2 else 256)
    if not divides:
        return f32(v * scale)
    tiny = bits_of(scale) < TINY
    if tiny:
        scale = f32(scale * 2.0**100)
    v = f32(v * f32(scale / (57344 if is_e5m2 else 448)))
    return f32(v * 2.0**-100) if tiny else v


class Quantizer:
    """bits: of a value; scales: f32 in a bucket; whole: one bucket, whatever the size says; levels: L, of grids."""

    def __init__(self, stage):
        q, arg = stage["id"], stage["arg"]
        self.id, self.stage, self.whole, self.levels, self.scales = q, stage, False, None, 1
        self.fixed, self.width = 0, 4
        if q in (0, 1, 2):
            self.bits, self.scales = (32, 16, 16)[q], 0
        elif q == 3:
            self.bits, self.scales = 1, 0
        elif q == 4:
            self.bits = 1
        elif q == 5 or q == 9:
            check((2 if q == 9 else 1) <= arg <= 8, "bits")
            self.bits, self.levels = arg, (1 << arg - 1) - 1
        elif q == 6:
            check(1 <= arg <= 8, "bits")
            self.bits, self.scales, self.levels = arg, 2, 0
        elif q in (7, 10):
            self.bits, self.levels = 2, 1
        elif q == 8:
            check(1 <= arg <= 127, "levels")
            self.bits, self.levels = (2 * arg).bit_length(), arg
        elif q == 11:
            self.bits, self.scales = 2, 0
        elif q == 12:
            self.bits, self.scales = 1, 2
        elif q == 13:
            self.bits = 0
        elif q == 14:
            self.bits, self.scales = 9, 0
        elif q in (17, 18):
            self.bits = 8
        elif q in (19, 20, 21):
            self.bits, self.fixed, self.width = (4, 8, 8)[q - 19], 32, 1
        elif q == 22:
            self.bits = 4
        elif q == 24:
            self.bits = 16
        else:
            raise NotCovered("quantizer %d" % q)

    def buckets(self, k):
        size = self.fixed or self.stage["size"]
        size = size if self.fixed or (0 < size < k and self.id not in (4, 7, 10, 13)) else max(k, 1)
        return size, (k + size - 1) // size if self.scales else 0

    def value_bytes(self, k):
        return self.scale_bytes(k) + words(k * self.bits)

    def scale_bytes(self, k):
        return words(8 * self.width * self.scales * self.buckets(k)[1])

    def decode(self, p, k):
        size, count = self.buckets(k)
        if self.width == 1:
            check(all(b < 255 for b in p[:count]) and not any(p[count:self.scale_bytes(k)]), "a scale")
            scales = [2.0**(min(b, 254) - 127) for b in p[:count]]
        else:
            scales = [float_at(p, 4 * i) for i in range(self.scales * count)]
        check(all(finite(s) for s in scales), "a scale is not finite")
        if self.id not in (6, 12, 13):
            check(all(bits_of(s) >> 31 == 0 for s in scales), "a scale is negative")
        codes = p[self.scale_bytes(k):]
        check(zeros_from(codes, k * self.bits), "bits behind the codes")
        out = []
        for i in range(k):
            c = bits_at(codes, i * self.bits, self.bits) if 0 < self.bits < 16 else None
            s = scales[self.scales * (i // size):self.scales * (i // size + 1)]
            if self.id == 0:
                v = float_at(codes, 4 * i)
            elif self.id == 1:
                v = struct.unpack_from("<e", codes, 2 * i)[0]
            elif self.id == 2:
                v = struct.unpack("<f", b"\0\0" + codes[2 * i:2 * i + 2])[0]
            elif self.id == 3:
                v = -1.0 if c else 1.0
            elif self.id == 4:
                v = -s[0] if c else s[0]
            elif self.id == 11:
                v = {0: -self.stage["value"], 2: self.stage["value"]}.get(c, 0.0)
            elif self.id == 12:
                v = s[0] if c else s[1]
            elif self.id == 13:
                v = s[0]
            elif self.id == 14:
                v = natural(codes, i, k)
            elif self.id in (17, 18, 20, 21):
                v = small_float(c, s[0], self.id in (18, 21), self.id < 20)
            elif self.id == 19:
                v = f32(E2M1[c & 7] * s[0]) * (-1 if c >> 3 else 1)
            elif self.id == 22:
                v = f32(NF4[c] * s[0])
            elif self.id == 24:
                v = f32((struct.unpack_from("<H", codes, 2 * i)[0] - 32767) * s[0])
            else:
                v = self.level(c, s)
            check(finite(v), "a value is not finite")
            out.append(v)
        return out

    def level(self, c, s):
        L = self.levels
        hi = s[1] if self.scales == 2 else f32(s[0] * L) if self.id == 9 else s[0]
        lo = s[0] if self.scales == 2 else -hi
        largest = max(bits_of(abs(lo)), bits_of(abs(hi)))
        before, after = (0.5, 2.0) if largest >= 0x7E800000 else (2.0**100, 2.0**-100) if largest < 0x17800000 else (1, 1)
        lo, hi = f32(lo * before), f32(hi * before)
        if L:
            step = f32(s[0] * before) if self.id == 9 else f32(hi / L)
            v = f32((min(c, 2 * L) - L) * step)
        else:
            step = f32(f32(hi - lo) / ((1 << self.stage["arg"]) - 1))
            v = f32(lo + f32(c * step))
        return f32(v * after)


# ---- indices ----

def elias_fano_parts(universe, k):
    low = (universe // k).bit_length() - 1
    return low, words(k * low), words(k + ((universe - 1) >> low) + 1)


def rice_parameter(universe, k):
    miss, c = 1.0 - k / universe, 0
    while not miss < 0.6180339887498949 and c < 63:
        miss, c = miss * miss, c + 1
    return c


def index_code(op, universe, k):
    if k == 0:
        return 1
    if op[CODE]["id"]:
        return op[CODE]["id"]
    return 2 if words(universe) < sum(elias_fano_parts(universe, k)[1:]) else 1


def index_bytes(code, universe, k):
    """None: the packet says it."""
    if k == 0:
        return 0
    return None if code == 3 else words(universe) if code == 2 else sum(elias_fano_parts(universe, k)[1:])


def indices(code, universe, k, p):
    if k == 0:
        return []
    out = []
    if code == 2:
        out = set_bits(p)
        check(zeros_from(p, universe), "bits behind the bitmap")
    elif code == 1:
        low, low_bytes, _ = elias_fano_parts(universe, k)
        lows, at = p[:low_bytes], set_bits(p[low_bytes:])
        check(zeros_from(lows, k * low), "bits behind the low parts")
        check(len(at) == k, "another number of indices")
        out = [at[i] - i << low | bits_at(lows, i * low, low) for i in range(k)]
    else:
        c, bits, at, index = rice_parameter(universe, k), bit_string(p), 0, -1
        for _ in range(k):
            zeros = 0
            while not bits >> at & 1:
                zeros, at = zeros + 1, at + 1
                check(at < 8 * len(p), "no end of an index")
            at += 1
            index += 1 + (zeros << c | bits >> at & (1 << c) - 1)
            at += c
            out.append(index)
        check(at <= 8 * len(p) and words(at) == len(p) and bits >> at == 0, "bits behind the indices")
    check(len(out) == k and all(a < b for a, b in zip(out, out[1:])) and out[-1] < universe, "indices")
    return out


# ---- one vector ----

def covered(op):
    if op[SAMPLE]["id"] > 2 or op[TRANSFORM]["id"] or op[CODE]["arg"]:
        raise NotCovered("a sample, transform or code")
    if op[SELECT]["id"] == GIVEN:
        raise NotCovered("given")


def index_shape(op, drawn, k):
    """Universe and number of the indices."""
    if not op[SELECT]["id"]:
        return drawn, 0
    block = op[SELECT]["size"] if op[SELECT]["id"] == BLOCKS else 1
    return (drawn + block - 1) // block, (k + block - 1) // block


def decode_body(op, tag, n, drawn, k, code, body, value_bytes):
    """n floats of the values and indices of one vector."""
    q = Quantizer(op[QUANTIZE])
    check(drawn <= n and k <= drawn and (op[SELECT]["id"] or k == drawn), "counts")
    check(value_bytes == q.value_bytes(k), "value bytes")
    values = q.decode(body[:value_bytes], k)
    where = range(k)
    if op[SELECT]["id"]:
        universe, count = index_shape(op, drawn, k)
        check(code == index_code(op, universe, count), "code of the indices")
        where = indices(code, universe, count, body[value_bytes:])
        if op[SELECT]["id"] == BLOCKS:
            size = op[SELECT]["size"]
            where = [i for b in where for i in range(b * size, min(drawn, (b + 1) * size))]
            check(len(where) == k, "blocks")
    y = [0.0] * n
    place = sample(op[SAMPLE], n, drawn, tag) if op[SAMPLE]["id"] else None
    for i, v in zip(where, values):
        y[place[i] if place else i] = v
    return y


# ---- packets ----

def checksum(p):
    w = struct.unpack("<%dI" % (len(p) // 4), p[:152] + bytes(16) + p[168:])
    return sum(w) & MASK, sum((len(w) - i) * v for i, v in enumerate(w)) & MASK


class Table:
    def __init__(self, p):
        self.p, self.at = p, 0

    def varint(self):
        v, shift = 0, 0
        while True:
            check(self.at < len(self.p) and shift < 64, "a number does not end")
            byte = self.p[self.at]
            self.at += 1
            v |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                check(v >> 64 == 0 and (byte or shift == 7), "a number is too long")
                return v

    def take(self, form):
        check(self.at + struct.calcsize(form) <= len(self.p), "the table ends")
        v = struct.unpack_from(form, self.p, self.at)
        self.at += struct.calcsize(form)
        return v[0]


def decode(p):
    """The floats of a packet of either version."""
    check(len(p) >= HEADER and p[:4] == b"cgpk", "not a packet")
    check(p[4] in (1, 2), "another version")
    op = stages_at(p, 8)
    n, drawn, k, seed, step, tensor, rank, first, second, threshold, last = struct.unpack_from("<QQQQQIIQQII", p, 80)
    check(len(p) % 4 == 0 and len(p) == HEADER + first + second and first % 4 == 0, "lengths")
    check(struct.unpack_from("<H", p, 6)[0] == 0 and threshold < 0x7F800000, "zeros")
    check(checksum(p) == struct.unpack_from("<QQ", p, 152), "checksum")
    tag = dict(seed=seed, step=step, tensor=tensor, rank=rank)
    if p[4] == 1:
        check(last == 0, "zeros")
        covered(op)
        return decode_body(op, tag, n, drawn, k, p[5], p[HEADER:], first)
    flags, count, body, t, y = p[5], last, HEADER, Table(p[HEADER + first:]), []
    check(flags < 8 and count > 0 and count <= second, "flags or segments")
    ops = []
    if flags & 2:
        many = t.varint()
        check(many * 72 <= len(t.p), "operators")
        for _ in range(many):
            check(t.at + 72 <= len(t.p), "operators")
            ops.append(stages_at(t.p, t.at))
            t.at += 72
    total_drawn = total_k = 0
    for _ in range(count):
        tag["tensor"] = tag["tensor"] + (t.varint() if flags & 4 else 0) & 0xFFFFFFFF
        m = t.varint()
        number = t.varint() if flags & 2 else 0
        check(number < 2 + len(ops) and m <= n - len(y), "operator or length")
        one = op if number == 0 else DENSE if number == 1 else ops[number - 2]
        covered(one)
        selected = one[SELECT]["id"]
        d = t.varint() if one[SAMPLE]["id"] == 1 else perm_k_drawn(one[SAMPLE], m, tag) if one[SAMPLE]["id"] else m
        count_k = t.varint() if selected else d
        if selected in KEEPS_LARGEST and not (flags & 1 and number == 0):
            check(t.take("<I") < 0x7F800000, "threshold")
        check(d <= m and count_k <= d, "counts")
        values = Quantizer(one[QUANTIZE]).value_bytes(count_k)
        universe, many = index_shape(one, d, count_k)
        code = index_code(one, universe, many) if selected else 0
        length = index_bytes(code, universe, many) if selected else 0
        if selected and one[CODE]["id"] == 3:
            length = 4 * t.varint()
        end = body + values + (length or 0)
        check(end <= HEADER + first, "bodies")
        y += decode_body(one, tag, m, d, count_k, code, p[body:end], values)
        body, tag["tensor"] = end, tag["tensor"] + 1 & 0xFFFFFFFF
        total_drawn, total_k = total_drawn + d, total_k + count_k
    check(body == HEADER + first and len(y) == n and total_drawn == drawn and total_k == k, "sums")
    check(len(t.p) - t.at < 4 and not any(t.p[t.at:]), "the end of the table")
    return y


# ---- the golden packets ----

def hash_floats(y):
    h = 14695981039346656037
    for v in y:
        h = (h ^ bits_of(v)) * 1099511628211 & MASK
    return h


def main(folder):
    listed, done, skipped, wrong, refused, dice = {}, {1: 0, 2: 0}, 0, 0, 0, random.Random(1)
    for name in ("decoded.txt", "decoded2.txt"):
        for line in open(os.path.join(folder, name)):
            packet, plain, _ = line.split()
            listed[packet] = int(plain, 16)
    for name in sorted(listed):
        p = open(os.path.join(folder, name), "rb").read()
        try:
            y = decode(p)
        except NotCovered:
            skipped += 1
            continue
        except Refused as why:
            wrong += 1
            print("FAIL: %s is refused: %s" % (name, why))
            continue
        if hash_floats(y) != listed[name]:
            wrong += 1
            print("FAIL: %s decodes to other floats" % name)
        done[p[4]] += 1
        if len(p) > 8192:
            continue
        for turn in range(6):
            damaged = bytearray(p)
            at = dice.randrange(len(p))
            if turn == 0:
                damaged = damaged[:at]
            else:
                damaged[at] ^= 1 << dice.randrange(8)
            try:
                decode(bytes(damaged))
                wrong += 1
                print("FAIL: %s with damage at %d is not refused" % (name, at))
            except (Refused, NotCovered):
                refused += 1
            if turn < 3 or p[4] == 1:
                continue
            for i, v in enumerate(checksum(bytes(damaged))):  # damage with a right checksum: refused or decoded, no more
                struct.pack_into("<Q", damaged, 152 + 8 * i, v)
            try:
                decode(bytes(damaged))
            except (Refused, NotCovered):
                refused += 1
    print("%d packets of version 1 and %d of version 2 decoded, %d not covered, %d damaged ones refused"
          % (done[1], done[2], skipped, refused))
    ok = wrong == 0 and done[1] >= 160 and done[2] >= 17
    print("Pass: %d, fail: %d, skip: 0." % (done[1] + done[2], wrong if ok or wrong else 1))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
