'use strict';
// Work that is split three to one between two functions: time and bytes. It lets the event loop
// turn, which the inspector's answers come through, and ends with its input.

let sum = 0;
const kept = [];

function spin(n) {
  let x = 123456789;
  for (let i = 0; i < n; i++) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
  }
  return x;
}

function three() { sum += spin(3_000_000); }

function one() { sum += spin(1_000_000); }

// Arrays of equal length, because an array has a header besides its elements.
function allocThree(i) {
  kept[i % 64] = new Array(100).fill(i);
  kept[(i + 1) % 64] = new Array(100).fill(i);
  kept[(i + 2) % 64] = new Array(100).fill(i);
}

function allocOne(i) { kept[i % 64] = new Array(100).fill(i); }

function turn() {
  three();
  one();
  for (let i = 0; i < 1000; i++) {
    allocThree(i);
    allocOne(i);
  }
  setImmediate(turn);
}

turn();
process.stdin.on('end', () => process.exit(0)).resume();
console.log('ready');
