/*
 * Networks of TensorFlow.js with numbers of their own, an input and its prediction, one line of JSON each, for
 * script/compare-tfjs.py: node script/compare-tfjs.js FOLDER, where FOLDER has node_modules/@tensorflow/tfjs.
 */
const tf = require(require.resolve('@tensorflow/tfjs', { paths: [process.argv[2]] }));
const L = tf.layers;
const recurrent = { recurrentInitializer: 'glorotNormal' };
let state = 7;

tf.setBackend('cpu');

function random() {
  state = (state * 1103515245 + 12345) % 2147483648;
  return state / 2147483648;
}

function sequential(...layers) {
  const model = tf.sequential();
  layers.forEach((layer) => model.add(layer));
  return model;
}

function merges() {
  const x = tf.input({ shape: [8] });
  const a = L.dense({ units: 6, activation: 'relu' }).apply(x), b = L.dense({ units: 6, activation: 'tanh' }).apply(x);
  const merged = [L.add(), L.multiply(), L.maximum(), L.average()].map((merge) => merge.apply([a, b]));
  return tf.model({ inputs: x, outputs: L.dense({ units: 3, activation: 'softmax' }).apply(L.concatenate().apply(merged)) });
}

function residual() {
  const x = tf.input({ shape: [10, 10, 4] });
  const conv = (options) => L.conv2d({ filters: 4, kernelSize: 3, padding: 'same', ...options });
  let y = L.activation({ activation: 'relu' }).apply(L.batchNormalization().apply(conv({ useBias: false }).apply(x)));
  y = L.globalMaxPooling2d({}).apply(L.add().apply([x, conv({}).apply(y)]));
  return tf.model({ inputs: x, outputs: L.dense({ units: 3 }).apply(y) });
}

function embedding(maskZero) {
  return sequential(L.embedding({ inputDim: 20, outputDim: 6, inputLength: 9, maskZero }), L.dropout({ rate: 0.3 }),
    L.lstm({ units: 5, ...recurrent }), L.dense({ units: 1, activation: 'sigmoid' }));
}

/* Name, shape of an item, model; token numbers are below the last. */
const networks = [
  ['mlp', [12], sequential(L.dense({ units: 16, activation: 'relu', inputShape: [12] }), L.dense({ units: 5, activation: 'softmax' }))],
  ['convnet', [12, 12, 3], sequential(L.conv2d({ filters: 8, kernelSize: 3, activation: 'relu', padding: 'same', inputShape: [12, 12, 3] }),
    L.maxPooling2d({ poolSize: 2 }), L.conv2d({ filters: 6, kernelSize: 3, strides: 2 }), L.batchNormalization(), L.flatten(), L.dense({ units: 4 }))],
  ['depthwise', [9, 9, 3], sequential(L.depthwiseConv2d({ kernelSize: 3, depthMultiplier: 2, inputShape: [9, 9, 3] }),
    L.separableConv2d({ filters: 5, kernelSize: 3, padding: 'same' }), L.averagePooling2d({ poolSize: 2, padding: 'same' }), L.globalAveragePooling2d({}))],
  ['transposed', [5, 5, 2], sequential(L.conv2dTranspose({ filters: 4, kernelSize: 3, strides: 2, padding: 'same', activation: 'elu', inputShape: [5, 5, 2] }),
    L.upSampling2d({ size: [2, 2] }), L.cropping2D({ cropping: [[1, 2], [2, 1]] }), L.zeroPadding2d({ padding: 1 }))],
  ['conv1d', [17, 3], sequential(L.conv1d({ filters: 6, kernelSize: 4, dilationRate: 2, inputShape: [17, 3] }), L.maxPooling1d({ poolSize: 2 }), L.globalMaxPooling1d({}))],
  ['simple rnn', [9, 4], sequential(L.simpleRNN({ units: 7, returnSequences: true, inputShape: [9, 4], ...recurrent }), L.simpleRNN({ units: 5, goBackwards: true, ...recurrent }))],
  ['lstm', [11, 3], sequential(L.lstm({ units: 6, returnSequences: true, recurrentActivation: 'sigmoid', inputShape: [11, 3], ...recurrent }), L.lstm({ units: 4, ...recurrent }))],
  ['gru', [11, 3], sequential(L.gru({ units: 6, returnSequences: true, inputShape: [11, 3], ...recurrent }), L.gru({ units: 5, recurrentActivation: 'sigmoid', ...recurrent }))],
  ['bidirectional', [7, 3], sequential(L.bidirectional({ layer: L.lstm({ units: 5, returnSequences: true, ...recurrent }), mergeMode: 'concat', inputShape: [7, 3] }),
    L.bidirectional({ layer: L.gru({ units: 4, ...recurrent }), mergeMode: 'sum' }))],
  ['time distributed', [6, 4], sequential(L.timeDistributed({ layer: L.dense({ units: 5, activation: 'relu' }), inputShape: [6, 4] }), L.permute({ dims: [2, 1] }),
    L.layerNormalization({}), L.flatten(), L.repeatVector({ n: 3 }))],
  ['activations', [10], sequential(L.dense({ units: 10, inputShape: [10] }), L.leakyReLU({ alpha: 0.2 }), L.prelu({ alphaInitializer: 'randomUniform' }),
    ...['selu', 'softplus', 'softsign', 'hardSigmoid', 'swish', 'elu'].map((activation) => L.dense({ units: 10, activation })))],
  ['merges', [8], merges()],
  ['residual', [10, 10, 4], residual()],
  ['embedding', [9], embedding(false), 20],
  ['masked', [9], embedding(true), 5],
];

for (const [name, item, model, tokens] of networks) {
  const shape = [6, ...item], size = (dims) => dims.reduce((a, b) => a * b, 1);
  const numbers = (dims, make) => Array.from({ length: size(dims) }, make);
  model.setWeights(model.weights.map((w) =>
    tf.tensor(numbers(w.shape, () => (w.name.includes('variance') ? 0.2 + random() : random() - 0.35)), w.shape)));
  const x = numbers(shape, () => (tokens ? Math.floor(random() * tokens) : 2 * random() - 1));
  const layers = model.layers.map((layer) => ({ name: layer.name,
    weights: layer.weights.map((w) => ({ name: w.originalName, shape: w.shape, numbers: Array.from(w.read().dataSync()) })) }));
  const y = model.predict(tf.tensor(x, shape));
  console.log(JSON.stringify({ name, topology: model.toJSON(null, false), layers, shape, x, y: Array.from(y.dataSync()) }));
}
