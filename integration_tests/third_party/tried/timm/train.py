"""A classifier as timm's train.py trains one: its loader and its optimizer, the forward and the backward of a step in
functions of their own, autocast and a scaler with --amp.

    train.py [--model NAME] [--amp]
"""
import argparse
import logging
import os
from contextlib import suppress
from functools import partial

import torch
import torch.nn as nn
import torchvision
from timm import utils
from timm.data import create_loader, resolve_data_config
from timm.loss import LabelSmoothingCrossEntropy
from timm.models import create_model, safe_model_name
from timm.optim import create_optimizer_v2, optimizer_kwargs
from timm.scheduler import create_scheduler_v2, scheduler_kwargs
from timm.utils import NativeScaler

_logger = logging.getLogger('train')

parser = argparse.ArgumentParser(description='Training')
parser.add_argument('--model', default='resnet18', type=str, metavar='MODEL')
parser.add_argument('--num-classes', type=int, default=100)
parser.add_argument('--input-size', default=(3, 64, 64), nargs=3, type=int)
parser.add_argument('-b', '--batch-size', type=int, default=8)
parser.add_argument('--images', type=int, default=32, help='made-up images of an epoch')
parser.add_argument('--channels-last', action='store_true', default=False)
parser.add_argument('--amp', action='store_true', default=False)
parser.add_argument('--amp-dtype', default='float16', type=str)
parser.add_argument('--opt', default='sgd', type=str)
parser.add_argument('--opt-eps', default=None, type=float)
parser.add_argument('--momentum', type=float, default=0.9)
parser.add_argument('--weight-decay', type=float, default=2e-5)
parser.add_argument('--clip-grad', type=float, default=None)
parser.add_argument('--clip-mode', type=str, default='norm')
parser.add_argument('--lr', type=float, default=0.05)
parser.add_argument('--sched', type=str, default='cosine')
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--warmup-epochs', type=int, default=0)
parser.add_argument('--smoothing', type=float, default=0.1)
parser.add_argument('-j', '--workers', type=int, default=0)
parser.add_argument('--grad-accum-steps', type=int, default=1)
parser.add_argument('--output', default='output', type=str)


def main():
    utils.setup_default_logging()
    args = parser.parse_args()

    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    utils.random_seed(42, 0)

    model = create_model(args.model, num_classes=args.num_classes)
    data_config = resolve_data_config(vars(args), model=model)
    model.to(device=device)
    if args.channels_last:
        model.to(memory_format=torch.channels_last)

    optimizer = create_optimizer_v2(model, **optimizer_kwargs(cfg=args))

    amp_autocast = suppress  # do nothing
    loss_scaler = None
    if args.amp:
        amp_dtype = torch.bfloat16 if args.amp_dtype == 'bfloat16' else torch.float16
        amp_autocast = partial(torch.autocast, device_type=device.type, dtype=amp_dtype)
        if amp_dtype == torch.float16:
            loss_scaler = NativeScaler(device=device.type)

    dataset_train = torchvision.datasets.FakeData(args.images, data_config['input_size'], args.num_classes)
    dataset_eval = torchvision.datasets.FakeData(args.images // 2, data_config['input_size'], args.num_classes)
    loader_train = create_loader(
        dataset_train,
        input_size=data_config['input_size'],
        batch_size=args.batch_size,
        is_training=True,
        use_prefetcher=device.type == 'cuda',
        mean=data_config['mean'],
        std=data_config['std'],
        num_workers=args.workers,
        persistent_workers=False,
        device=device,
    )
    loader_eval = create_loader(
        dataset_eval,
        input_size=data_config['input_size'],
        batch_size=args.batch_size,
        is_training=False,
        use_prefetcher=device.type == 'cuda',
        mean=data_config['mean'],
        std=data_config['std'],
        num_workers=args.workers,
        persistent_workers=False,
        device=device,
    )

    train_loss_fn = LabelSmoothingCrossEntropy(smoothing=args.smoothing).to(device=device)
    validate_loss_fn = nn.CrossEntropyLoss().to(device=device)
    lr_scheduler, num_epochs = create_scheduler_v2(
        optimizer, **scheduler_kwargs(argparse.Namespace(
            **vars(args), min_lr=0.0, warmup_lr=1e-5, decay_epochs=30, decay_rate=0.1, cooldown_epochs=0)),
        updates_per_epoch=len(loader_train))

    os.makedirs(args.output, exist_ok=True)
    _logger.info(f'{safe_model_name(args.model)}: {num_epochs} epochs')
    for epoch in range(num_epochs):
        train_metrics = train_one_epoch(
            epoch, model, loader_train, optimizer, train_loss_fn, args, device=device, lr_scheduler=lr_scheduler,
            amp_autocast=amp_autocast, loss_scaler=loss_scaler)
        eval_metrics = validate(model, loader_eval, validate_loss_fn, args, device=device, amp_autocast=amp_autocast)
        _logger.info(f'{train_metrics} {eval_metrics}')
        torch.save({'epoch': epoch, 'state_dict': model.state_dict()}, os.path.join(args.output, 'last.pth.tar'))
        lr_scheduler.step(epoch + 1, eval_metrics['top1'])


def train_one_epoch(
        epoch,
        model,
        loader,
        optimizer,
        loss_fn,
        args,
        device=torch.device('cuda'),
        lr_scheduler=None,
        amp_autocast=suppress,
        loss_scaler=None,
):
    second_order = hasattr(optimizer, 'is_second_order') and optimizer.is_second_order
    losses_m = utils.AverageMeter()
    model.train()

    accum_steps = args.grad_accum_steps
    num_updates = epoch * len(loader)
    optimizer.zero_grad()
    for batch_idx, (input, target) in enumerate(loader):
        need_update = (batch_idx + 1) % accum_steps == 0
        input, target = input.to(device), target.to(device)
        if args.channels_last:
            input = input.contiguous(memory_format=torch.channels_last)

        def _forward():
            with amp_autocast():
                output = model(input)
                loss = loss_fn(output, target)
            if accum_steps > 1:
                loss /= accum_steps
            return loss

        def _backward(_loss):
            if loss_scaler is not None:
                loss_scaler(
                    _loss,
                    optimizer,
                    clip_grad=args.clip_grad,
                    clip_mode=args.clip_mode,
                    parameters=model.parameters(),
                    create_graph=second_order,
                    need_update=need_update,
                )
            else:
                _loss.backward(create_graph=second_order)
                if need_update:
                    if args.clip_grad is not None:
                        utils.dispatch_clip_grad(model.parameters(), value=args.clip_grad, mode=args.clip_mode)
                    optimizer.step()

        loss = _forward()
        _backward(loss)
        losses_m.update(loss.item() * accum_steps, input.size(0))

        if not need_update:
            continue
        num_updates += 1
        optimizer.zero_grad()
        lr_scheduler.step_update(num_updates=num_updates, metric=losses_m.avg)
    return {'loss': losses_m.avg}


def validate(model, loader, loss_fn, args, device=torch.device('cuda'), amp_autocast=suppress):
    losses_m = utils.AverageMeter()
    top1_m = utils.AverageMeter()
    top5_m = utils.AverageMeter()
    model.eval()
    with torch.inference_mode():
        for input, target in loader:
            input, target = input.to(device), target.to(device)
            if args.channels_last:
                input = input.contiguous(memory_format=torch.channels_last)
            with amp_autocast():
                output = model(input)
                loss = loss_fn(output, target)
            acc1, acc5 = utils.accuracy(output, target, topk=(1, 5))
            losses_m.update(loss.item(), input.size(0))
            top1_m.update(acc1.item(), output.size(0))
            top5_m.update(acc5.item(), output.size(0))
    return {'loss': losses_m.avg, 'top1': top1_m.avg, 'top5': top5_m.avg}


if __name__ == '__main__':
    main()
