// What the environment says.

const { HOST = '127.0.0.1', PORT = '8080', CPUS = '1', MEMORY_MIB } = process.env;

export const settings = {
  host: HOST,
  port: Number(PORT),
  cpus: Number(CPUS),
  memoryMiB: MEMORY_MIB === undefined ? undefined : Number(MEMORY_MIB),
};
