// SPDX-License-Identifier: Apache-2.0
// echo.proto as grpc-js sees it. NODE_PATH holds the packages that npm ci has installed into the build tree.
'use strict';

const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const definition = loader.loadSync(path.join(__dirname, '..', 'echo.proto'), {keepCase: true, defaults: true});

exports.grpc = grpc;
exports.Interop = grpc.loadPackageDefinition(definition).unpin.interop.Interop;

// --name value ... -> {name: value, ...}
exports.parseArguments = (defaults) => {
  const options = {...defaults};
  const words = process.argv.slice(2);
  for (let i = 0; i < words.length; i += 2) {
    const name = words[i].replace(/^--/, '');
    if (!(name in options) || i + 1 === words.length) {
      console.error(`unknown option ${words[i]}, or its value is missing`);
      process.exit(2);
    }
    options[name] = typeof options[name] === 'number' ? Number(words[i + 1]) : words[i + 1];
  }
  return options;
};
