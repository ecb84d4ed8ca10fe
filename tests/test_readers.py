"""Files that somebody else wrote: one clear error, whatever is in them, and no more memory than they deserve."""
import zlib

import pytest
from PIL import ImageFile
import torch

from gradual_cf.data.images import pixels
from gradual_cf.models.networks import load_model, save_model, tabular_mlp


def test_a_network_comes_back_with_the_seed_it_had(tmp_path):
    net = tabular_mlp(4, 3, 8, seed=5)
    back = load_model(save_model(net, tmp_path/'n.safetensors', note='x'))
    assert back.spec == net.spec and back.meta['note'] == 'x' and not back.training
    for a,b in zip(net.parameters(), back.parameters(), strict=True): assert torch.equal(a, b) and b.device.type == 'cpu'


def png(size, *chunks):
    "A grey picture's bytes, with whatever lies between its pixels."
    def chunk(name, data): return len(data).to_bytes(4, 'big') + name + data + zlib.crc32(name + data).to_bytes(4, 'big')
    head,pixels = size.to_bytes(4, 'big')*2 + bytes([8, 0, 0, 0, 0]), zlib.compress(b'\0'*72)
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunk(*c) for c in [(b'IHDR', head), (b'IDAT', pixels[:5]), *chunks, (b'IDAT', pixels[5:]), (b'IEND', b'')])


@pytest.mark.parametrize('lenient', [False, True])
def test_a_broken_part_of_a_picture_is_a_broken_file(tmp_path, monkeypatch, lenient):
    "Pillow calls it a syntax error, unless some library told it for everybody to let broken pictures through."
    monkeypatch.setattr('PIL.ImageFile.LOAD_TRUNCATED_IMAGES', lenient)
    (tmp_path/'good.png').write_bytes(png(8))
    (tmp_path/'x.png').write_bytes(png(8, (b'\x94\0 \xd6', b'abc')))
    assert pixels(str(tmp_path/'good.png')).shape == (1, 1, 8, 8)
    with pytest.raises(ValueError, match='data must be an image file, got .*x.png'): pixels(str(tmp_path/'x.png'))
    assert lenient == ImageFile.LOAD_TRUNCATED_IMAGES
