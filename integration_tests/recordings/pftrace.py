"""A recording of torch.profiler as its .pftrace: the packets that PyTorch's encoder writes (torch/csrc/profiler/cupti,
2026), in its order: tracks, texts by number, the beginnings of the host's slices and then their ends, what the GPU did."""
import struct

MICROSECOND = 1000


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def uint(field, number):
    return varint(field << 3) + varint(number)


def text(field, value):
    value = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def value_of(value):
    """The value of a debug annotation."""
    if isinstance(value, bool):
        return uint(2, int(value))
    if isinstance(value, int):
        return uint(4, value)
    if isinstance(value, float):
        return varint(5 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, list):
        return b"".join(text(12, value_of(element)) for element in value)
    return text(6, "null" if value is None else value)


class Numbers(dict):
    """Texts by number, from 1, in the order in which they are first asked for."""

    def of(self, name):
        return self.setdefault(name, len(self) + 1)


def ns(event, key):
    return round(event[key] * MICROSECOND)


def encode(events, base_ns=0, categories=True, architecture="sm_90"):
    """The bytes of a .pftrace of Chrome's events. Earlier versions of the profiler wrote no categories."""
    names, kinds, queues, threads = Numbers(), Numbers(), Numbers(), Numbers()
    tracks, begins, ends, stages = b"", b"", b"", b""
    packet = lambda body: text(1, body)
    stage_kinds = {"kernel": (1, "Kernel"), "gpu_memcpy": (2, "Memcpy"), "gpu_memset": (3, "Memset")}
    for event in events:
        if event.get("ph") != "X":
            continue
        arguments = event.get("args", {})
        start = base_ns + ns(event, "ts")
        if event["cat"] in stage_kinds:
            stage = (uint(1, arguments["correlation"]) + uint(2, ns(event, "dur")) + uint(11, arguments["device"]) +
                     uint(13, 100 + queues.of(arguments["stream"])) + uint(14, stage_kinds[event["cat"]][0]) +
                     uint(20, names.of(event["name"])))
            if "grid" in arguments:
                size = lambda three: b"".join(uint(i, n) for i, n in enumerate(three, 1))
                stage += text(21, text(1, size(arguments["grid"])) + text(2, size(arguments["block"])))
            extra = {"device id": arguments["device"], "stream id": arguments["stream"], "correlation": arguments["correlation"],
                     "arch": architecture}
            stage += b"".join(text(6, text(1, key) + text(2, str(value))) for key, value in extra.items())
            stages += packet(uint(8, start) + uint(10, 1) + uint(13, 2) + text(53, stage))
            continue
        track = threads.of((event["pid"], event["tid"]))
        slice_ = uint(9, 1) + uint(11, track) + uint(10, names.of(event["name"]))
        if categories:
            slice_ += uint(3, kinds.of(event["cat"]))
        slice_ += b"".join(text(4, text(10, key) + value_of(value)) for key, value in arguments.items())
        begins += packet(uint(8, start) + uint(10, 1) + uint(13, 2) + text(11, slice_))
        ends += packet(uint(8, start + ns(event, "dur")) + uint(10, 1) + text(11, uint(9, 2) + uint(11, track)))
    for (process, thread), number in threads.items():
        tracks += packet(text(60, uint(1, number) + text(4, uint(1, process) + uint(2, thread))))
    interned = b"".join(text(2, uint(1, number) + text(2, name)) for name, number in names.items())
    interned += b"".join(text(1, uint(1, number) + text(2, name)) for name, number in kinds.items())
    interned += b"".join(text(24, uint(1, number) + text(2, name)) for number, name in stage_kinds.values())
    interned += b"".join(text(24, uint(1, 100 + number) + text(2, f"stream {stream}")) for stream, number in queues.items())
    return tracks + packet(uint(10, 1) + uint(13, 1) + text(12, interned)) + begins + ends + stages
