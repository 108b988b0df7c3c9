"""Runs a torchvision model forward only: no loss, no optimizer, no gradients.

    python inference.py -a mobilenet_v3_small -b 8 --batches 10
"""
import argparse

import torch
import torchvision


def main():
    parser = argparse.ArgumentParser(description="Image classification, inference only", allow_abbrev=False)
    parser.add_argument("-a", "--arch", default="resnet18", help="name of a torchvision classification model")
    parser.add_argument("-b", "--batch-size", type=int, default=8, metavar="N")
    parser.add_argument("--batches", type=int, default=10, metavar="N")
    parser.add_argument("--image-size", type=int, default=224, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
    model = getattr(torchvision.models, args.arch)(weights=None).to(device).eval()
    with torch.inference_mode():
        for batch in range(args.batches):
            images = torch.randn(args.batch_size, 3, args.image_size, args.image_size, device=device)
            logits = model(images)
            print(f"batch {batch}: mean logit {logits.float().mean().item():.4e}", flush=True)


if __name__ == "__main__":
    main()
