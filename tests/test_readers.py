"""Files that somebody else wrote: one clear error, whatever is in them, and no more memory than they deserve."""
import json
import zipfile
import zlib

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from toy import sharpen

from gradual_cf.scale.batch import explain_dataset
from gradual_cf.gradual import GradualCF
from gradual_cf.data.images import pixels
from gradual_cf.use.letter import check_letter, letter
from gradual_cf.models.networks import load_model, save_model, tabular_mlp
from gradual_cf.data.tables import tabular
from gradual_cf.data.words import load_glove

DEEP = '['*100_000 + ']'*100_000


@pytest.mark.parametrize('header', [
    '[]', '3', 'null', DEEP, '{"spec": [1]}', '{"spec": "ab"}', '{"spec": {"network": []}}', '{"spec": {"network": "tabular_mlp"}}',
    '{"spec": {"network": "tabular_mlp", "d": 3, "foo": 1}}', '{"spec": {"network": "tabular_mlp", "d": 1000000000000}}',
    '{"spec": {"network": "tabular_mlp", "d": 3, "width": 200000}}', '{"spec": {"network": "tabular_mlp", "d": 1e400}}',
    '{"spec": {"network": "tabular_mlp", "d": -3}}', '{"spec": {"network": "tabular_mlp", "d": "x"}}', '{"spec": {"network": "tabular_mlp", "d": 3, "seed": 5}}'],
    ids=lambda header: header[:60])
def test_a_description_that_fits_nothing_is_refused_before_memory_is_taken(tmp_path, header):
    save_file({'w': torch.zeros(2)}, tmp_path/'m.safetensors', metadata={'gradual_cf': header})
    with pytest.raises(ValueError, match='^path must') as e: load_model(tmp_path/'m.safetensors')
    assert len(str(e.value)) < 1000


def test_a_network_comes_back_with_the_seed_it_had(tmp_path):
    net = tabular_mlp(4, 3, 8, seed=5)
    back = load_model(save_model(net, tmp_path/'n.safetensors', note='x'))
    assert back.spec == net.spec and back.meta['note'] == 'x' and not back.training
    for a,b in zip(net.parameters(), back.parameters(), strict=True): assert torch.equal(a, b) and b.device.type == 'cpu'


@pytest.fixture(scope='module')
def small():
    r = np.random.default_rng(0)
    df = pd.DataFrame({'a': r.integers(0, 9, 60), 'b': r.normal(0, 1, 60).round(3), 'c': r.choice(['x', 'y'], 60)})
    domain = tabular(df)
    x = domain.encode(df).x.float()
    return GradualCF(sharpen(tabular_mlp(x.shape[1], seed=0), x), domain, sigma=0).fit(df), df


@pytest.fixture(scope='module')
def told(small):
    cf,df = small
    cfs = cf.explain(df[:20])
    i = int((cfs.valid & cfs.changed.any(1)).argmax())
    return json.loads(letter(cfs[i:i + 1], format='json', explainer=cf)[0])


@pytest.mark.parametrize('value', [None, True, 3, [1], {}, '9'*400, 'nan', 'inf', '1e999', 'x', '', '1-2', '\0'], ids=repr)
def test_values_of_a_letter_are_values_of_the_table(small, told, value):
    text = json.dumps(told | dict(record=[line | dict(before=value) for line in told['record']]))
    with pytest.raises(ValueError, match='^text must hold'): check_letter(text, small[0])
    assert check_letter(json.dumps(told), small[0]).flips.all()


def test_a_letter_of_many_brackets_is_none(small):
    with pytest.raises(ValueError, match='^text must hold a record of 3 numbered lines'): check_letter('{"record":' + DEEP + '}', small[0])


@pytest.fixture(scope='module')
def begun(small, tmp_path_factory):
    out = tmp_path_factory.mktemp('batch')/'out'
    explain_dataset(small[0], small[1][:4], out, batch_size=4)
    return out


@pytest.mark.parametrize('text', [DEEP, '[]', 'null', '{'], ids=lambda text: text[:5])
def test_a_folder_whose_manifest_says_nothing_is_not_gone_on_with(small, begun, text):
    (begun/'_manifest.json').write_text(text)
    with pytest.raises(ValueError, match='^out must hold a readable'): explain_dataset(small[0], small[1][:4], begun, batch_size=4)


def png(size, *chunks):
    "A grey picture's bytes, with whatever lies between its pixels."
    def chunk(name, data): return len(data).to_bytes(4, 'big') + name + data + zlib.crc32(name + data).to_bytes(4, 'big')
    head,pixels = size.to_bytes(4, 'big')*2 + bytes([8, 0, 0, 0, 0]), zlib.compress(b'\0'*72)
    return b'\x89PNG\r\n\x1a\n' + b''.join(chunk(*c) for c in [(b'IHDR', head), (b'IDAT', pixels[:5]), *chunks, (b'IDAT', pixels[5:]), (b'IEND', b'')])


@pytest.mark.parametrize('size', [4097, 20_000])
def test_a_small_file_of_many_pixels_is_not_unpacked(tmp_path, size):
    "The header alone says how many there are; the larger one is what Pillow calls a bomb."
    (tmp_path/'x.png').write_bytes(png(size))
    with pytest.raises(ValueError, match='data must be (images of at most|an image file)'): pixels(str(tmp_path/'x.png'))


def test_a_broken_part_of_a_picture_is_a_broken_file(tmp_path):
    "Pillow calls it a syntax error."
    (tmp_path/'good.png').write_bytes(png(8))
    (tmp_path/'x.png').write_bytes(png(8, (b'\x94\0 \xd6', b'abc')))
    assert pixels(str(tmp_path/'good.png')).shape == (1, 1, 8, 8)
    with pytest.raises(ValueError, match='data must be an image file, got .*x.png'): pixels(str(tmp_path/'x.png'))


def test_a_line_without_end_is_not_read_to_its_end(tmp_path):
    with zipfile.ZipFile(tmp_path/'v.zip', 'w', zipfile.ZIP_DEFLATED) as z: z.writestr('v.txt', b'w 0.5 0.5\n' + b'\0'*2**22)
    with pytest.raises(ValueError, match='line 2 must have less than 1,048,576 bytes'): load_glove(tmp_path/'v.zip', cache=False)
