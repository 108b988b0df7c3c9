from programs import MENDED, ConvNet, images, train

train(ConvNet(channels=64, blocks=8), images(16 if MENDED else 4, 128))
