from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch import nn

from programs import MENDED, ConvNet, images, infer

model = ConvNet().eval()
if MENDED:
    model.stem, model.norm = fuse_conv_bn_eval(model.stem, model.norm), nn.Identity()
    for block in model.blocks:
        block.first, block.bn1 = fuse_conv_bn_eval(block.first, block.bn1), nn.Identity()
        block.second, block.bn2 = fuse_conv_bn_eval(block.second, block.bn2), nn.Identity()
infer(model, images())
