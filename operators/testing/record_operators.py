#!/usr/bin/env python3
"""Records the operators of one training step as text that estimate_replay and the tests read.

    record_operators.py [-m MODEL] [-b BATCH] [--opt sgd|adamw|…] [--amp] [--foreach] [--fused] > FILE

Runs on torch 1.13 and 2.x, on the CPU. MODEL is a torchvision classification model, or "misc": the operators that
those do not use (attention, recurrence, embedding, transposed and 1-D and 3-D convolution, resampling, …).
"""
import argparse
import json
import os
import sys
import tempfile
import warnings

import torch
import torchvision

TYPES = {"unsigned char": "u8", "signed char": "i8", "short": "i16", "short int": "i16", "int": "i32", "long": "i64",
         "long int": "i64", "c10::Half": "f16", "float": "f32", "double": "f64", "bool": "bool",
         "c10::BFloat16": "bf16", "c10::complex<float>": "c64", "c10::complex<double>": "c128"}


class Misc(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.embedding = nn.Embedding(50, 32)
        self.encoder = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.lstm = nn.LSTM(32, 16, batch_first=True)
        self.gru = nn.GRU(16, 16, batch_first=True)
        self.group = nn.GroupNorm(4, 16)
        self.up = nn.ConvTranspose2d(16, 8, 3, stride=2)
        self.volume = nn.Conv3d(1, 2, 3)
        self.line = nn.Conv1d(8, 4, 3)
        self.instance = nn.InstanceNorm2d(8)
        self.prelu = nn.PReLU()
        self.bilinear = nn.Bilinear(4, 4, 4)
        self.fc = nn.Linear(4, 10)
        self.norm = nn.BatchNorm1d(10)

    def forward(self, x):
        F = torch.nn.functional
        y, _ = self.lstm(self.encoder(self.embedding(x)))
        y, _ = self.gru(y)
        z = self.group(y.transpose(1, 2)).unsqueeze(-1).expand(-1, -1, -1, 6).contiguous()
        z = self.instance(F.leaky_relu(self.up(z)))
        z = F.avg_pool2d(F.interpolate(z, scale_factor=2, mode="bilinear", align_corners=False), 2)
        z = self.volume(z.unsqueeze(1)).mean(2).amax(1)
        z = self.line(z.mean(-1, keepdim=True).expand(-1, -1, 8).transpose(1, 2)).softmax(-1)
        z = torch.einsum("bij,bkj->bik", self.prelu(z), z)
        q = torch.tanh(z) + torch.sigmoid(z) + torch.exp(-z.abs())
        q = self.bilinear(q.mean(1), q.sum(1))
        return self.norm(self.fc(F.elu(q) * F.softplus(q)))


def build(args):
    if args.model == "misc":
        return Misc(), torch.randint(0, 50, (args.batch, 7)), 10
    kw = {"init_weights": False, "aux_logits": True} if args.model in ("googlenet", "inception_v3") else {}
    size = 299 if args.model == "inception_v3" else 224
    return getattr(torchvision.models, args.model)(**kw), torch.rand(args.batch, 3, size, size), 1000


def record(args, path):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, images, classes = build(args)
    target = torch.randint(0, classes, (args.batch,))
    criterion = torch.nn.CrossEntropyLoss()
    kw = {name: True for name in ("foreach", "fused") if getattr(args, name)}
    parameters = model.parameters()
    optimizer = {
        "sgd": lambda: torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=1e-4, **kw),
        "adamw": lambda: torch.optim.AdamW(parameters, 1e-3, **kw),
        "adam": lambda: torch.optim.Adam(parameters, 1e-3, weight_decay=1e-4, **kw),
        "rmsprop": lambda: torch.optim.RMSprop(parameters, 1e-3, momentum=0.9, **kw),
    }[args.opt]()

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=args.amp):
            out = model(images)
            if torch.is_tensor(out):
                loss = criterion(out, target)
            else:  # auxiliary classifiers
                loss = sum(weight * criterion(o, target) for weight, o in zip((1, 0.4, 0.3), out))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    profiler = torch.profiler
    observer = (getattr(profiler, "ExecutionTraceObserver", None) or profiler.ExecutionGraphObserver)()
    observer.register_callback(path)
    observer.start()
    step()
    observer.stop()
    observer.unregister_callback()


def tensor(value, shape, kind, strides):
    if value[1] == 0:  # no storage: undefined
        return "_"
    text = "%s[%s]@%d" % (TYPES.get(kind[7:-1], "f8"), ",".join(map(str, shape)), value[1])
    if value[2]:
        text += "+%d" % value[2]
    if strides and 0 in strides:
        distinct = 1
        for size, stride in zip(shape, strides):
            distinct *= 1 if stride == 0 and size > 1 else size
        text += "/%d" % distinct
    return text


def argument(value, shape, kind, strides):
    if kind.startswith("Tensor("):
        return tensor(value, shape, kind, strides)
    if kind.startswith("GenericList["):
        kinds = split(kind[len("GenericList["):-1])
        if kinds and kinds[0].startswith("Tensor("):
            strides = strides or [None] * len(kinds)
            parts = [tensor(*four) for four in zip(value, shape, kinds, strides)]
            return "{ " + " ".join(p for p in parts if p != "_") + " }"
        if all(k in ("Int", "Bool") for k in kinds):
            return "I" + ",".join(str(int(v)) for v in value)
        return "?"
    if kind == "Int":
        return "i%d" % value
    if kind == "Bool":
        return "b%d" % value
    if kind == "Double":
        return "d%r" % float(value)
    return "_" if kind == "None" else "?"


def split(text):
    """Splits "A,B[C,D]" at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(c, 0)
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]] if text else []


def arguments(node, which):
    if isinstance(node[which], dict):  # torch 2.x
        part = node[which]
        values, shapes, kinds, strides = part["values"], part["shapes"], part["types"], part.get("strides")
    else:
        one = which[:-1]
        values, shapes, kinds, strides = node[which], node[one + "_shapes"], node[one + "_types"], None
    strides = strides or [None] * len(values)
    return " ".join(argument(*four) for four in zip(values, shapes, kinds, strides))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-m", "--model", default="resnet18")
    parser.add_argument("-b", "--batch", type=int, default=2)
    parser.add_argument("--opt", default="sgd")
    for flag in ("amp", "foreach", "fused"):
        parser.add_argument("--" + flag, action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        record(args, path)
        with open(path, encoding="utf-8") as file:
            nodes = json.load(file)["nodes"]
    print("# record_operators.py %s; torch %s" % (" ".join(sys.argv[1:]), torch.__version__))
    depth = {}
    for node in sorted(nodes, key=lambda n: n.get("rf_id") or scope(n, "rf_id")):
        parent = node.get("parent", node.get("ctrl_deps"))
        name = node["name"]
        if "::" not in name or "autograd::" in name or scope(node, "scope") != 0:  # scopes and autograd's nodes
            depth[node["id"]] = depth.get(parent, 0)
            continue
        depth[node["id"]] = depth.get(parent, 0) + 1
        print(depth[node["id"]] - 1, name, "(", arguments(node, "inputs"), ") -> (",
              arguments(node, "outputs"), ")")


def scope(node, name):
    if name in node:
        return node[name]
    return next((a["value"] for a in node.get("attrs", []) if a["name"] == name), 0)


if __name__ == "__main__":
    main()
