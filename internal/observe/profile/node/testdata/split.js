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

// An array of n elements holds 8 n bytes (or 4 n, where pointers are compressed).
function allocThree(i) { kept[i % 64] = new Array(300).fill(i); }

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
