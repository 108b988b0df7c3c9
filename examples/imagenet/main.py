"""Trains or evaluates any of torchvision's classification models on ImageNet, or on made-up data.

    python main.py -a resnet50 /data/imagenet                    # folders train/ and val/, one subfolder per class
    python main.py -a resnet18 --dummy -b 8                      # no data needed
    torchrun --nproc_per_node 4 main.py -a resnet50 --dummy      # one process per GPU (or per CPU worker)
    python main.py -a resnet50 --dummy --amp                     # mixed precision

Everything that is printed without -v depends on the arguments and --seed only.
"""
import argparse
import contextlib
import inspect
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.utils.data
import torchvision.datasets as datasets
import torchvision.models as models
import torchvision.transforms as transforms


def model_names():
    """Names of the classification models of this torchvision: functions of the package that build an nn.Module."""
    names = []
    for name, value in vars(models).items():
        if not name.islower() or name.startswith("_") or not inspect.isfunction(value):
            continue
        if "weights" in inspect.signature(value).parameters and not name.startswith("get_"):
            names.append(name)
    return sorted(names)


def parse_arguments():
    parser = argparse.ArgumentParser(description="ImageNet training", allow_abbrev=False)
    parser.add_argument("data", nargs="?", default="imagenet", help="folder with train/ and val/ (default: imagenet)")
    parser.add_argument("-a", "--arch", default="resnet18", choices=model_names(), metavar="ARCH",
                        help="one of: " + " ".join(model_names()))
    parser.add_argument("-j", "--workers", type=int, default=4, metavar="N", help="data loading processes (default: 4)")
    parser.add_argument("--epochs", type=int, default=90, metavar="N", help="(default: 90)")
    parser.add_argument("--start-epoch", type=int, default=0, metavar="N")
    parser.add_argument("-b", "--batch-size", type=int, default=256, metavar="N",
                        help="images per step over all GPUs of this node (default: 256)")
    parser.add_argument("--lr", "--learning-rate", dest="lr", type=float, default=0.1, help="(default: 0.1)")
    parser.add_argument("--momentum", type=float, default=0.9, help="(default: 0.9)")
    parser.add_argument("--wd", "--weight-decay", dest="weight_decay", type=float, default=1e-4, help="(default: 1e-4)")
    parser.add_argument("-p", "--print-freq", type=int, default=10, metavar="N", help="steps between lines (default: 10)")
    parser.add_argument("--resume", metavar="PATH", help="checkpoint to continue from")
    parser.add_argument("--save", metavar="PATH", help="where to write a checkpoint after each epoch")
    parser.add_argument("-e", "--evaluate", action="store_true", help="only evaluate on the validation set")
    parser.add_argument("--pretrained", action="store_true", help="start from torchvision's weights")
    parser.add_argument("--seed", type=int, help="makes the run repeatable")
    parser.add_argument("--gpu", type=int, metavar="N", help="use this GPU only")
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    parser.add_argument("--amp", action="store_true", help="automatic mixed precision: float16 on CUDA, bfloat16 on CPU")
    parser.add_argument("--dummy", action="store_true", help="made-up images instead of a data set")
    parser.add_argument("--dummy-images", type=int, default=1281167, metavar="N",
                        help="size of the made-up training set; the validation set has 1/25 of it (default: 1281167)")
    parser.add_argument("--image-size", type=int, metavar="N",
                        help="crop size (default: 299 for inception_v3, else 224)")
    parser.add_argument("--num-classes", type=int, default=1000, metavar="N", help="(default: 1000)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print times as well")
    return parser.parse_args()


class DummyImages(torch.utils.data.Dataset):
    """`count` random images. Image i is the same in every process and every epoch."""

    def __init__(self, count, image_size, classes):
        self.count, self.image_size, self.classes = count, image_size, classes

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        image = torch.randn(3, self.image_size, self.image_size, generator=generator)
        return image, int(torch.randint(self.classes, (1,), generator=generator))


def make_datasets(args):
    size = args.image_size or (299 if args.arch == "inception_v3" else 224)
    if args.dummy:
        return (DummyImages(args.dummy_images, size, args.num_classes),
                DummyImages(max(1, args.dummy_images // 25), size, args.num_classes))
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train = datasets.ImageFolder(os.path.join(args.data, "train"), transforms.Compose([
        transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]))
    validation = datasets.ImageFolder(os.path.join(args.data, "val"), transforms.Compose([
        transforms.Resize(size * 256 // 224), transforms.CenterCrop(size), transforms.ToTensor(), normalize]))
    return train, validation


def make_model(args):
    """The model by name. The weights that --pretrained asks for come from torchvision's cache or its site."""
    options = {"weights": "DEFAULT"} if args.pretrained else {"weights": None, "num_classes": args.num_classes}
    if args.arch in ("googlenet", "inception_v3") and not args.pretrained:
        options.update(aux_logits=True, init_weights=True)
    # Vision transformers know their image size from the start; others take what comes.
    if args.image_size and "vit_" in args.arch:
        options["image_size"] = args.image_size
    if args.image_size and args.arch.startswith("maxvit"):
        options["input_size"] = (args.image_size, args.image_size)
    return getattr(models, args.arch)(**options)


class Average:
    """Running mean of a number, weighted by how many samples it stands for."""

    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n

    @property
    def mean(self):
        return self.sum / max(1, self.count)


def count_correct(output, target, ks=(1, 5)):
    """How many of the batch have their class among the k most likely ones, for each k."""
    with torch.no_grad():
        best = output.topk(min(max(ks), output.size(1)), dim=1).indices
        hits = best.eq(target.unsqueeze(1))
        return [int(hits[:, :k].sum()) for k in ks]


def total_loss(criterion, output, target):
    """googlenet and inception_v3 return their auxiliary classifiers' outputs too while they train."""
    if torch.is_tensor(output):
        return criterion(output, target), output
    logits = output.logits
    extra = [value for name, value in output._asdict().items() if name != "logits" and value is not None]
    weight = 0.3 if len(extra) == 2 else 0.4
    return criterion(logits, target) + weight * sum(criterion(value, target) for value in extra), logits


def autocast(args, device):
    if not args.amp:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.float16 if device.type == "cuda" else torch.bfloat16)


def train_epoch(loader, model, criterion, optimizer, scaler, device, epoch, args, is_main):
    loss_average, top1, top5 = Average(), Average(), Average()
    step_time, data_time = Average(), Average()
    model.train()
    end = time.perf_counter()
    for step, (images, target) in enumerate(loader):
        data_time.update(time.perf_counter() - end, 1)
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)

        with autocast(args, device):
            loss, output = total_loss(criterion, model(images), target)

        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

        if step % args.print_freq == 0:
            # Reading the loss waits for the GPU: only when a line is printed.
            n = images.size(0)
            loss_average.update(loss.item(), n)
            correct1, correct5 = count_correct(output, target)
            top1.update(100.0 * correct1 / n, n)
            top5.update(100.0 * correct5 / n, n)
        step_time.update(time.perf_counter() - end, 1)
        end = time.perf_counter()
        if is_main and step % args.print_freq == 0:
            line = (f"Epoch [{epoch}][{step}/{len(loader)}]  Loss {loss.item():.4e} ({loss_average.mean:.4e})"
                    f"  Acc@1 {top1.mean:6.2f}  Acc@5 {top5.mean:6.2f}")
            if args.verbose:
                line += f"  Time {step_time.mean:.3f}  Data {data_time.mean:.3f}"
            print(line, flush=True)


def evaluate(loader, model, criterion, device, args, is_main):
    loss_average, top1, top5 = Average(), Average(), Average()
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            images = images.to(device, non_blocking=True)
            target = target.to(device, non_blocking=True)
            # In full precision: the inference path of attention in torch 1.13 cannot run under autocast on the CPU.
            output = model(images)
            loss = criterion(output, target)
            n = images.size(0)
            loss_average.update(loss.item(), n)
            correct1, correct5 = count_correct(output, target)
            top1.update(100.0 * correct1 / n, n)
            top5.update(100.0 * correct5 / n, n)
    sums = torch.tensor([loss_average.sum, top1.sum, top5.sum, loss_average.count], dtype=torch.float64)
    if dist.is_initialized():
        sums = sums.to(device)
        dist.all_reduce(sums)
    loss, acc1, acc5 = (sums[:3] / sums[3]).tolist()
    if is_main:
        print(f"Test  Loss {loss:.4e}  Acc@1 {acc1:6.2f}  Acc@5 {acc5:6.2f}", flush=True)
    return acc1


class NoScaler:
    """Stands in for GradScaler where gradients need no scaling."""

    def scale(self, loss):
        return loss

    def step(self, optimizer):
        optimizer.step()

    def update(self):
        pass


def make_scaler(args, device):
    if not args.amp or device.type != "cuda":
        return NoScaler()
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda")
    return torch.cuda.amp.GradScaler()


def main():
    args = parse_arguments()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False

    # torchrun tells each process who it is in the environment.
    distributed = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    rank = int(os.environ.get("RANK", 0))
    world_size = int(os.environ.get("WORLD_SIZE", 1))
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    use_cuda = torch.cuda.is_available() and not args.cpu
    is_main = rank == 0

    if use_cuda:
        device = torch.device("cuda", args.gpu if args.gpu is not None else local_rank if distributed else 0)
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    if distributed:
        dist.init_process_group("nccl" if use_cuda else "gloo")
        args.batch_size = max(1, args.batch_size // world_size)

    if is_main:
        print(f"=> {args.arch}, {device.type}" + (f", {world_size} processes" if distributed else ""), flush=True)
    model = make_model(args).to(device)
    if distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[device.index] if use_cuda else None)
    elif use_cuda and args.gpu is None and torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)

    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    scaler = make_scaler(args, device)

    best_acc1 = 0.0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=device)
        args.start_epoch = checkpoint["epoch"]
        best_acc1 = checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])

    train_set, validation_set = make_datasets(args)
    if distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(train_set)
        validation_sampler = torch.utils.data.distributed.DistributedSampler(validation_set, shuffle=False)
    else:
        train_sampler, validation_sampler = None, None
    train_loader = torch.utils.data.DataLoader(
        train_set, batch_size=args.batch_size, shuffle=train_sampler is None, sampler=train_sampler,
        num_workers=args.workers, pin_memory=use_cuda)
    validation_loader = torch.utils.data.DataLoader(
        validation_set, batch_size=args.batch_size, sampler=validation_sampler,
        num_workers=args.workers, pin_memory=use_cuda)

    if args.evaluate:
        evaluate(validation_loader, model, criterion, device, args, is_main)
    else:
        for epoch in range(args.start_epoch, args.epochs):
            if distributed:
                train_sampler.set_epoch(epoch)
            train_epoch(train_loader, model, criterion, optimizer, scaler, device, epoch, args, is_main)
            best_acc1 = max(best_acc1, evaluate(validation_loader, model, criterion, device, args, is_main))
            scheduler.step()
            if args.save and is_main:
                torch.save({"epoch": epoch + 1, "arch": args.arch, "best_acc1": best_acc1,
                            "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                            "scheduler": scheduler.state_dict()}, args.save)
    if distributed:
        # The model first: where it is the last to hold the group, torch 1.13 ends the group without giving the GIL away,
        # and waits for ever for a Gloo thread that wants it.
        del model
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
