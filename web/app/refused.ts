// Refused is an answer in words for the reader, such as that two runs are not alike.
export class Refused extends Error {}
