"""kornia's augmentations on the GPU before a small network."""
import kornia.augmentation as K
import torch
import torchvision
from counted import counted

augment = K.AugmentationSequential(K.RandomHorizontalFlip(p=0.5), K.ColorJitter(0.2, 0.2, 0.2, 0.1, p=0.8),
                                   K.RandomAffine(degrees=15, p=0.5), K.Normalize(0.5, 0.25))
model = torchvision.models.resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(5):
    image, target = torch.rand(16, 3, 64, 64).cuda(), torch.randint(10, (16,)).cuda()
    with counted(i):
        loss = torch.nn.functional.cross_entropy(model(augment(image)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
